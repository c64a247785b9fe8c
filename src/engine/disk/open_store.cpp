#include "engine/disk/open_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace candor::engine {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostByDefault = 10'000'000'000;
constexpr uint64_t kLeastBlocks = 32;

// Of the disk that holds the folder, or will.
std::optional<fs::space_info> space_of(fs::path folder) {
  std::error_code status;
  while (!fs::exists(folder, status) && folder.has_parent_path() && folder != folder.parent_path()) {
    folder = folder.parent_path();
  }
  const fs::space_info space = fs::space(folder, status);
  return status ? std::nullopt : std::optional(space);
}

}  // namespace

OpenedStore open_store(const EngineOptions& options, backend::KvStore& kv) {
  if (options.cache_dir.empty()) return {};
  if (!options.prefix_cache || !options.use_kv_cache) return {.problem = "there is no prefix cache to keep"};
  const uint64_t block_bytes = kv.block_memory(0).size();
  if (block_bytes == 0) return {.problem = "the K/V of several ranks, or of this backend, is not kept on disk"};
  std::error_code status;
  const fs::path folder = fs::absolute(options.cache_dir, status);
  const auto space = space_of(folder);
  if (!space) return {.problem = fmt::format("the disk of {} does not answer", folder.string())};
  const uint64_t max_bytes =
      options.cache_bytes > 0 ? options.cache_bytes : std::min(kMostByDefault, space->available / 10);
  if (max_bytes > space->capacity) {
    return {.problem = fmt::format("{} bytes are asked for {}, whose disk has {}", max_bytes, folder.string(),
                                   space->capacity)};
  }
  if (max_bytes < kLeastBlocks * block_bytes) {
    return {.problem = fmt::format("{} bytes are too few: {} blocks of this model need {}", max_bytes, kLeastBlocks,
                                   kLeastBlocks * block_bytes)};
  }
  auto store = prefix_store::Store::open({.folder = folder, .max_bytes = max_bytes});
  if (!store) return {.problem = store.error().message};
  return {.store = std::move(*store)};
}

}  // namespace candor::engine
