#include "apps/commands/served_models.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "apps/bench/machine_limits.h"
#include "apps/options/hub_cache.h"
#include "apps/options/model_choice.h"
#include "base/error.h"
#include "base/utf8.h"
#include "candor/engine.h"
#include "formats/companion_name.h"
#include "hub/model_cache.h"
#include "serve/core/keep_alive.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNameBytes = 200;

// As clients ask for it. Not "." or "..", which would be read as paths.
bool is_name(const std::string& name) {
  return !name.empty() && name.size() <= kMostNameBytes && first_invalid_utf8(name) == name.size() && name != "." &&
         name != ".." && std::ranges::none_of(name, [](unsigned char c) { return c < ' ' || c == 0x7f || c == '"'; });
}

// "x-00002-of-00003.gguf" belongs to the file that begins with its first part.
bool is_later_part(const std::string& stem) {
  constexpr size_t kTail = 15;  // "-00002-of-00003"
  if (stem.size() <= kTail) return false;
  const std::string tail = stem.substr(stem.size() - kTail);
  const auto digits = [&](size_t at) {
    return std::all_of(tail.begin() + static_cast<std::ptrdiff_t>(at),
                       tail.begin() + static_cast<std::ptrdiff_t>(at) + 5, [](char c) { return c >= '0' && c <= '9'; });
  };
  return tail[0] == '-' && digits(1) && tail.substr(6, 4) == "-of-" && digits(10) && tail.substr(1, 5) != "00001";
}

bool is_model(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() == ".gguf") {
    return fs::is_regular_file(path, ignored) && !is_later_part(path.stem().string()) &&
           !formats::is_companion_name(path);
  }
  return fs::is_directory(path, ignored) && fs::exists(path / "config.json", ignored);
}

uint64_t bytes_of(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) {
    const uint64_t n = fs::file_size(path, failed);
    return failed ? 0 : n;
  }
  uint64_t sum = 0;
  for (fs::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code odd;
    const uint64_t n = at->path().extension() == ".safetensors" ? fs::file_size(at->path(), odd) : 0;
    sum += odd ? 0 : n;
  }
  return sum;
}

int64_t changed_at(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? int64_t{status.st_mtime} : 0;
}

std::string name_of(const fs::path& path) {
  return path.extension() == ".gguf" ? path.stem().string() : path.filename().string();
}

}  // namespace

std::optional<double> keep_alive_of(const std::string& text) {
  const auto seconds = serve::parse_keep_alive(text);
  return seconds ? seconds : serve::parse_keep_alive(text + "s");
}

Result<GivenModel> read_given_model(const std::string& text) {
  GivenModel given;
  std::string file = text;
  std::error_code ignored;
  const size_t mark = text.find('=');
  if (mark != std::string::npos && !fs::exists(text, ignored)) {
    given.name = text.substr(0, mark);
    file = text.substr(mark + 1);
    if (!is_name(given.name) || file.empty())
      return fail(ErrorKind::kInvalidInput, fmt::format("\"{}\" is not NAME=FILE with a name of 1 to {} bytes of text",
                                                        clipped(text), kMostNameBytes));
  }
  CANDOR_ASSIGN(const ModelAndTexts choice, choose_model(file, {}));
  given.path = choice.model;
  if (!fs::exists(given.path, ignored))
    return fail(ErrorKind::kNotFound, fmt::format("there is no file {}", clipped(given.path.string())));
  const bool is_hub = !fs::exists(file, ignored);
  if (given.name.empty())
    given.name = is_hub ? file : name_of(given.path.filename().empty() ? given.path.parent_path() : given.path);
  if (!is_name(given.name))
    return fail(ErrorKind::kInvalidInput,
                fmt::format("the model {} has no name that clients could ask for: give one as "
                            "NAME=FILE",
                            clipped(given.path.string())));
  return given;
}

void ServedModels::warn_once(const std::string& words) {
  if (warned_.size() < kMostModels && warned_.insert(words).second) log_.warning(words);
}

void ServedModels::add(std::string name, const fs::path& path, std::vector<serve::ModelSource>& all) {
  if (all.size() >= kMostModels)
    return warn_once(fmt::format("there are more than {} models: the rest is not offered", kMostModels));
  if (!is_name(name))
    return warn_once(fmt::format("{} is not offered: its name is no text of at most {} bytes", clipped(path.string()),
                                 kMostNameBytes));
  if (!names_.insert(name).second)
    return warn_once(
        fmt::format("{} is not offered: the name \"{}\" is another's", clipped(path.string()), clipped(name)));
  all.push_back({.name = std::move(name), .path = path, .file_bytes = bytes_of(path), .modified = changed_at(path)});
}

void ServedModels::add_folder(std::vector<serve::ModelSource>& all) {
  std::error_code failed;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(*options_.folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (is_model(at->path())) paths.push_back(at->path());
  }
  if (failed)
    warn_once(fmt::format("the folder {} cannot be read: {}", clipped(options_.folder->string()), failed.message()));
  std::ranges::sort(paths);
  for (const fs::path& path : paths) add(name_of(path), path, all);
}

// user/repo, where it has one model here; else user/repo:FILE, without its ending.
void ServedModels::add_pulled(std::vector<serve::ModelSource>& all) {
  const auto pulled = hub::list_models(hub_cache_root());
  std::map<std::string, size_t> n_of;
  for (const hub::CachedModel& model : pulled) n_of[model.name] += is_model(model.path) ? 1 : 0;
  for (const hub::CachedModel& model : pulled) {
    if (!is_model(model.path)) continue;
    add(n_of[model.name] == 1 ? model.name : model.name + ":" + name_of(model.path), model.path, all);
  }
}

std::vector<serve::ModelSource> ServedModels::list() {
  names_.clear();
  std::vector<serve::ModelSource> all;
  for (const GivenModel& given : options_.given) add(given.name, given.path, all);
  if (options_.folder) add_folder(all);
  if (options_.has_pulled) add_pulled(all);
  return all;
}

Result<uint64_t> ServedModels::plan(const serve::ModelSource& source) {
  CANDOR_ASSIGN(const MemoryPlan plan, Engine::plan(options_.engine(source.path)));
  return plan.total_bytes();
}

Result<serve::OpenedModel> ServedModels::open(const serve::ModelSource& source, const std::atomic<bool>& stop) {
  EngineOptions engine_options = options_.engine(source.path);
  const auto costs = std::make_shared<RememberedCosts>(engine_options);
  engine_options.costs = costs->recall();
  // What is thrown here ends loading with an error, and nothing else.
  auto engine = Engine::open(engine_options, [&stop](uint64_t, uint64_t) {
    if (stop) throw std::runtime_error("the server is shutting down");
  });
  if (!engine) return engine.error();
  if (!engine_options.costs) costs->keep((*engine)->info().costs);
  serve::OpenedModel opened{.kept = costs, .engine = std::move(*engine)};
  if (engine_options.costs)
    opened.engine->on_step([costs = costs.get()](const StepReport& report) { costs->take(report); });
  if (const auto limits = known_limits(opened.engine->info())) opened.read_limit = limits->dram_read_bytes;
  const std::lock_guard lock(mutex_);
  std::erase_if(costs_, [](const auto& old) { return old.expired(); });
  costs_.push_back(costs);
  return opened;
}

bool ServedModels::forget_costs_that_are_off() {
  bool is_any = false;
  const std::lock_guard lock(mutex_);
  for (const auto& weak : costs_) {
    if (const auto costs = weak.lock()) is_any |= costs->forget_if_off();
  }
  return is_any;
}

}  // namespace candor::apps
