#pragma once
// `--cache-dir`, `--cache-size` and `--no-disk-cache`: where the prefix cache goes when the program ends.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "candor/engine.h"

namespace CLI {
class App;
}

namespace candor::apps {

struct DiskCacheOptions {
  bool is_offered = false;  // by the command: others have none
  std::optional<std::string> folder;
  std::optional<int64_t> size_mb;
  bool is_off = false;
};

// The user's, where no other is named; empty where none is known.
std::filesystem::path default_prefix_folder();

void add_disk_cache(CLI::App& command, DiskCacheOptions& options);
void apply_disk_cache(const DiskCacheOptions& options, EngineOptions& engine);
// One line where the engine has none although it should.
void tell_of_disk_cache(const EngineOptions& options, const Engine& engine);

}  // namespace candor::apps
