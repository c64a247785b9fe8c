#include "hub/model_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "formats/companion_name.h"

namespace candor::hub {
namespace {

namespace fs = std::filesystem;

// Whole files only: a link whose blob is there.
std::vector<fs::path> complete_files(const fs::path& snapshot) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (fs::recursive_directory_iterator at(snapshot, ignored), end; at != end; at.increment(ignored)) {
    if (at->is_regular_file(ignored)) files.push_back(at->path());
  }
  std::ranges::sort(files);
  return files;
}

void add_snapshot(const std::string& name, const fs::path& snapshot, std::vector<CachedModel>& models) {
  CachedModel folder{name, snapshot, 0};
  bool has_config = false;
  std::error_code ignored;
  for (const fs::path& file : complete_files(snapshot)) {
    const uint64_t n_bytes = fs::file_size(file, ignored);
    const bool is_model = file.extension() == ".gguf" && !formats::is_companion_name(file);
    if (is_model) models.push_back({name, file, n_bytes});
    if (file.extension() == ".safetensors") folder.n_bytes += n_bytes;
    has_config |= file == snapshot / "config.json";
  }
  if (has_config && folder.n_bytes > 0) models.push_back(folder);
}

}  // namespace

std::vector<CachedModel> list_models(const fs::path& cache_root) {
  std::vector<CachedModel> models;
  std::error_code ignored;
  for (fs::directory_iterator at(cache_root, ignored), end; at != end; at.increment(ignored)) {
    constexpr std::string_view kPrefix = "models--";
    const std::string folder = at->path().filename().string();
    const size_t split = folder.find("--", std::min(folder.size(), kPrefix.size()));
    std::string commit;
    std::ifstream(at->path() / "refs" / "main") >> commit;
    if (!folder.starts_with(kPrefix) || split == std::string::npos || !is_hex(commit, 40)) continue;
    if (!is_repo_part(folder.substr(kPrefix.size(), split - kPrefix.size())) || !is_repo_part(folder.substr(split + 2)))
      continue;
    const std::string name =
        fmt::format("{}/{}", folder.substr(kPrefix.size(), split - kPrefix.size()), folder.substr(split + 2));
    add_snapshot(name, at->path() / "snapshots" / commit, models);
  }
  std::ranges::sort(models, {}, [](const CachedModel& model) { return std::pair(model.name, model.path); });
  return models;
}

Result<fs::path> find_cached(const RepoName& name, const fs::path& cache_root) {
  for (const CachedModel& model : list_models(cache_root)) {
    const bool is_gguf = model.path.extension() == ".gguf";
    if (model.name != full_name(name)) continue;
    if (name.quant.empty() || (is_gguf && names_quant(model.path.filename().string(), name.quant))) return model.path;
  }
  const std::string quant = name.quant.empty() ? "" : ":" + name.quant;
  return fail(ErrorKind::kNotFound,
              fmt::format("{0}{1} is not on this machine: candor pull {0}{1} fetches it", full_name(name), quant));
}

}  // namespace candor::hub
