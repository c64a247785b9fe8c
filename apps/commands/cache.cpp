// candor cache: the prefix cache on disk, looked at, checked, cut down, carried elsewhere and filled ahead.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/disk_cache_options.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/kv_type.h"
#include "formats/json_text.h"
#include "prefix_store/segment.h"
#include "prefix_store/store.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;
using prefix_store::RecordHeader;
using prefix_store::RecordPlace;
using prefix_store::Store;

struct CacheOptions {
  DiskCacheOptions disk;
  std::string only;  // a fingerprint, or its beginning
  std::optional<int64_t> older_than_hours;
  bool all = false;
  bool json = false;
  std::string file;
  std::vector<std::string> files;
};

struct WarmOptions {
  GenerationOptions generation;
  std::vector<std::string> positionals;
  std::optional<std::string> file, messages;
};

std::string fingerprint_of(const RecordHeader& header) {
  return fmt::format("{:016x}", header.model_hash);
}

int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// nullptr where there is none, which is said.
std::unique_ptr<Store> open_store(const CacheOptions& options, bool makes_it = false) {
  const fs::path folder = options.disk.folder ? fs::path(*options.disk.folder) : default_prefix_folder();
  std::error_code status;
  if (folder.empty()) return say_error("no folder is known: name it by --cache-dir"), nullptr;
  if (!makes_it && !fs::exists(folder, status))
    return say_error(fmt::format("there is no cache at {}", folder.string())), nullptr;
  constexpr uint64_t kMost = uint64_t{1} << 60;
  auto store = Store::open({.folder = folder, .max_bytes = kMost, .segment_bytes = uint64_t{256} << 20});
  if (store) return std::move(*store);
  return say_error(store.error().message), nullptr;
}

struct Group {
  uint64_t n_blocks = 0;
  uint64_t n_tokens = 0;
  uint64_t n_bytes = 0;
  uint64_t n_states = 0;
  int64_t newest = 0;
};
using GroupKey = std::tuple<std::string, uint64_t, int32_t, int32_t>;  // fingerprint, adapters, K/V type, numerics

std::map<GroupKey, Group> groups_of(const Store& store) {
  std::map<GroupKey, Group> groups;
  for (const RecordPlace& place : store.blocks()) {
    const RecordHeader& header = place.header;
    Group& group = groups[{fingerprint_of(header), header.adapters_hash, header.kv_type, header.numerics}];
    ++group.n_blocks;
    group.n_tokens += header.n_tokens;
    group.n_bytes += header.record_bytes();
    group.n_states += header.state_bytes > 0 ? 1 : 0;
    group.newest = std::max(group.newest, header.made_at);
  }
  return groups;
}

std::string kv_name(int32_t type) {
  const bool is_known = type >= 0 && static_cast<size_t>(type) < std::size(kKvTypeNames);
  return is_known ? std::string(kKvTypeNames[static_cast<size_t>(type)]) : "?";
}

std::string age_of(int64_t made_at) {
  const int64_t seconds = std::max<int64_t>(0, unix_seconds() - made_at);
  if (seconds < 3600) return fmt::format("{} min", seconds / 60);
  return seconds < 48 * 3600 ? fmt::format("{} h", seconds / 3600) : fmt::format("{} days", seconds / 86400);
}

int list(const CacheOptions& options) {
  const auto store = open_store(options);
  if (!store) return kUserInput;
  const auto figures = store->figures();
  nlohmann::ordered_json json = {{"folder", store->folder().string()},
                                 {"bytes", figures.n_bytes},
                                 {"blocks", figures.n_blocks},
                                 {"models", nlohmann::ordered_json::array()}};
  std::string text =
      fmt::format("{}: {} blocks, {}\n", store->folder().string(), figures.n_blocks, format_bytes(figures.n_bytes));
  for (const auto& [key, group] : groups_of(*store)) {
    const auto& [model, adapters, kv_type, numerics] = key;
    const std::string with = adapters == 0 ? "" : fmt::format(" + adapters {:016x}", adapters);
    json["models"].push_back({{"fingerprint", model},
                              {"adapters", adapters == 0 ? "" : fmt::format("{:016x}", adapters)},
                              {"kv_type", kv_name(kv_type)},
                              {"numerics", numerics},
                              {"blocks", group.n_blocks},
                              {"tokens", group.n_tokens},
                              {"bytes", group.n_bytes},
                              {"states", group.n_states},
                              {"newest", group.newest}});
    text += fmt::format("  model {}{}, K/V {}: {} tokens in {} blocks, {}, newest {} old\n", model, with,
                        kv_name(kv_type), format_count(static_cast<int64_t>(group.n_tokens)), group.n_blocks,
                        format_bytes(group.n_bytes), age_of(group.newest));
  }
  write_out(options.json ? json.dump(2) + "\n" : text);
  return kDone;
}

bool reads_well(Store& store, const RecordPlace& place) {
  std::vector<std::byte> payload;
  return store.read(place.header.digest, place.header.parent, place.header.block_tokens(), payload);
}

int verify(const CacheOptions& options) {
  const auto store = open_store(options);
  if (!store) return kUserInput;
  const std::vector<RecordPlace> blocks = store->blocks();
  const auto n_damaged = std::ranges::count_if(blocks, [&](const auto& place) { return !reads_well(*store, place); });
  const auto n_unsound = store->figures().n_unsound_bytes;
  write_out(fmt::format("{} blocks, {} damaged; {} bytes hold none\n", blocks.size(), n_damaged, n_unsound));
  return n_damaged + static_cast<int64_t>(n_unsound) == 0 ? kDone : kUserInput;
}

int prune(const CacheOptions& options) {
  if (!options.all && options.only.empty() && !options.older_than_hours && !options.disk.size_mb)
    return say_error("prune what? --model FINGERPRINT, --older-than HOURS, --cache-size MB, or --all"), kUserInput;
  const auto store = open_store(options);
  if (!store) return kUserInput;
  std::vector<RecordPlace> blocks = store->blocks();
  std::ranges::sort(blocks, std::greater<>(), [](const auto& place) { return place.header.made_at; });
  std::map<prefix_store::Digest, bool> beyond;  // oldest first out
  uint64_t n_bytes = 0;
  for (const RecordPlace& place : blocks) {
    n_bytes += place.header.record_bytes();
    beyond[place.header.digest] =
        options.disk.size_mb && n_bytes > static_cast<uint64_t>(*options.disk.size_mb) * 1'000'000;
  }
  const int64_t before = unix_seconds() - options.older_than_hours.value_or(0) * 3600;
  const auto n_removed = store->remove_if([&](const RecordHeader& header) {
    const bool is_meant = options.only.empty() || fingerprint_of(header).starts_with(options.only);
    const bool is_old = options.older_than_hours && header.made_at <= before;
    const bool names_no_more = !options.older_than_hours && !options.disk.size_mb;
    return is_meant && (names_no_more || is_old || beyond[header.digest]);
  });
  if (!n_removed) return say_error(store->figures().last_problem + ": end it, or wait"), kUserInput;
  write_out(fmt::format("{} blocks removed, {} left\n", *n_removed, format_bytes(store->figures().n_bytes)));
  return kDone;
}

int export_blocks(const CacheOptions& options) {
  const auto store = open_store(options);
  if (!store) return kUserInput;
  auto segment = prefix_store::Segment::create(options.file);
  if (!segment) return say_error(segment.error().message), kUserInput;
  uint64_t n = 0;
  std::vector<std::byte> payload;
  for (const RecordPlace& place : store->blocks()) {
    const RecordHeader& header = place.header;
    if (!options.only.empty() && !fingerprint_of(header).starts_with(options.only)) continue;
    if (!store->read(header.digest, header.parent, header.block_tokens(), payload)) continue;
    const auto written = (*segment)->append(header, payload);
    if (!written) return say_error(written.error().message), kUserInput;
    ++n;
  }
  write_out(fmt::format("{} blocks, {} in {}\n", n, format_bytes((*segment)->n_bytes()), options.file));
  return kDone;
}

int import_blocks(const CacheOptions& options) {
  const auto store = open_store(options, true);
  if (!store) return kUserInput;
  uint64_t n = 0;
  uint64_t n_damaged = 0;
  std::vector<std::byte> payload;
  for (const std::string& file : options.files) {
    const auto segment = prefix_store::Segment::open(file);
    if (!segment) return say_error(fmt::format("{} cannot be read", file)), kUserInput;
    uint64_t n_unsound = 0;
    for (const RecordPlace& place : segment->find_new(n_unsound)) {
      payload.resize(place.header.payload_bytes());
      const bool is_good =
          segment->read(place.offset + sizeof(RecordHeader), payload) && prefix_store::fits(place.header, payload);
      if (is_good && !store->append(place.header, payload)) return say_error(store->figures().last_problem), kUserInput;
      (is_good ? n : n_damaged) += 1;
    }
    if (n_unsound > 0) ++n_damaged;
  }
  write_out(fmt::format("{} blocks taken in{}\n", n, n_damaged > 0 ? fmt::format(", {} damaged", n_damaged) : ""));
  return n_damaged > 0 ? kUserInput : kDone;
}

Result<Prompt> prompt_of(const WarmOptions& options) {
  if (options.file.has_value() == options.messages.has_value())
    return fail(ErrorKind::kInvalidInput, "give --file TEXT (the system's text), or --messages JSON");
  ChatPrompt chat{.add_generation_prompt = false};
  if (options.file) {
    CANDOR_ASSIGN(std::string text, read_text_file(*options.file, "the text"));
    if (options.generation.raw) return Prompt(TextPrompt{.text = std::move(text)});
    chat.messages.push_back({"system", std::move(text)});
    return Prompt(std::move(chat));
  }
  CANDOR_ASSIGN(const std::string text, read_text_file(*options.messages, "the messages"));
  CANDOR_ASSIGN(const nlohmann::json json, formats::parse_json(text, "the messages", "give an array of messages"));
  if (!json.is_array()) return fail(ErrorKind::kInvalidInput, "the messages: expected an array of {role, content}");
  for (const auto& message : json) {
    if (!message.is_object() || !message.value("content", nlohmann::json()).is_string())
      return fail(ErrorKind::kInvalidInput, "the messages: expected role and content, both texts");
    chat.messages.push_back({message.value("role", "user"), message["content"].get<std::string>()});
  }
  return Prompt(std::move(chat));
}

int warm(const WarmOptions& options) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  auto prompt = prompt_of(options);
  if (!prompt) return say_error(prompt.error().message), kUserInput;
  int code = kDone;
  auto engine = open_engine(engine_options(options.generation, choice->model), code);
  if (!engine) return code;
  if (!engine->disk_cache().is_on) return kUserInput;
  Request request{.prompt = std::move(*prompt)};
  request.sampling.max_tokens = 1;
  const auto completion = engine->generate(request);
  if (!completion) return say_error(completion.error().message), exit_code(completion.error());
  const int64_t n_tokens = completion->summary.usage.prompt_tokens;
  const int32_t block = engine->info().kv_block_tokens;
  engine.reset();
  write_out(fmt::format("{} tokens read; whole blocks of {} are in the cache: {} tokens\n", n_tokens, block,
                        n_tokens / block * block));
  return kDone;
}

void add_folder(CLI::App& command, CacheOptions& options) {
  command.add_option("--cache-dir", options.disk.folder, "the folder (the user's cache folder)")->type_name("FOLDER");
}

void add_only(CLI::App& command, CacheOptions& options) {
  command.add_option("--model", options.only, "of this model alone: its fingerprint, or the beginning of it")
      ->type_name("FINGERPRINT");
}

using Run = int (*)(const CacheOptions&);

CLI::App* add_part(CLI::App& command, const std::shared_ptr<CacheOptions>& options, Action& action, const char* name,
                   const char* help, Run run) {
  CLI::App* part = command.add_subcommand(name, help);
  add_folder(*part, *options);
  part->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
  return part;
}

void add_warm(CLI::App& command, Action& action) {
  CLI::App* part =
      command.add_subcommand("warm", "read a text or messages now, so that prompts that begin so are quick");
  const auto options = std::make_shared<WarmOptions>();
  part->add_option("model_argument", options->positionals, "[MODEL]");
  part->add_option("-f,--file", options->file, "the system's text")->type_name("FILE");
  part->add_option("--messages", options->messages, "a JSON array of messages")->type_name("FILE");
  add_raw(*part, options->generation);
  add_disk_cache(*part, options->generation.disk_cache);
  part->add_option("-m,--model", options->generation.model, "the model's file")->type_name("FILE");
  add_int(*part, "-c,--ctx-size", options->generation.n_ctx, 1, 1 << 30, "context in tokens (the model's own)");
  add_int(*part, "-t,--threads", options->generation.n_threads, 1, 1024, "threads (see candor doctor)");
  add_kv_type(*part, options->generation.kv_type);
  add_fast_weights(*part, options->generation.fast_weights);
  part->callback([options, &action] { action = [options] { return warm(*options); }; });
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("cache", "the prefix cache on disk: list, verify, prune, export, import, warm");
  command->require_subcommand(1);
  const auto options = std::make_shared<CacheOptions>();
  add_part(*command, options, action, "list", "what is in it, by model", list)
      ->add_flag("--json", options->json, "as JSON");
  add_part(*command, options, action, "verify", "read every block and check it", verify);
  CLI::App* cut = add_part(*command, options, action, "prune", "remove blocks", prune);
  add_only(*cut, *options);
  add_int(*cut, "--older-than", options->older_than_hours, 0, 1 << 24, "HOURS: those written so long ago");
  add_int(*cut, "--cache-size", options->disk.size_mb, 0, int64_t{1} << 30, "MB: the oldest, until so much is left");
  cut->add_flag("--all", options->all, "everything");
  CLI::App* out = add_part(*command, options, action, "export", "write blocks to one file", export_blocks);
  out->add_option("file", options->file, "FILE")->required();
  add_only(*out, *options);
  CLI::App* in = add_part(*command, options, action, "import", "take in what export wrote", import_blocks);
  in->add_option("files", options->files, "FILE...")->required();
  add_warm(*command, action);
}

}  // namespace candor::apps
