#include "apps/options/disk_cache_options.h"

#include <CLI/CLI.hpp>

#include "apps/options/arguments.h"
#include "apps/terminal/terminal.h"
#include "apps/terminal/user_folders.h"

namespace candor::apps {

std::filesystem::path default_prefix_folder() {
  const std::filesystem::path folder = user_cache_folder();
  return folder.empty() ? folder : folder / "prefixes";
}

void add_disk_cache(CLI::App& command, DiskCacheOptions& options) {
  options.is_offered = true;
  command.add_option("--cache-dir", options.folder, "keep the prefix cache there (the user's cache folder)")
      ->type_name("FOLDER");
  add_int(command, "--cache-size", options.size_mb, 1, int64_t{1} << 30,
          "MB of it at most (10 000, or a tenth of the free disk)");
  command.add_flag("--no-disk-cache", options.is_off, "keep no prefixes on disk");
}

void apply_disk_cache(const DiskCacheOptions& options, EngineOptions& engine) {
  if (!options.is_offered || options.is_off) return;
  const bool can_be = engine.n_ranks == 1 && engine.backend == "cpu" && engine.use_kv_cache;
  if (!options.folder && !can_be) return;
  engine.cache_dir = options.folder ? std::filesystem::path(*options.folder) : default_prefix_folder();
  engine.cache_bytes = static_cast<uint64_t>(options.size_mb.value_or(0)) * 1'000'000;
  if (engine.cache_dir.empty()) say_warning("no cache on disk: there is neither HOME nor XDG_CACHE_HOME (--cache-dir)");
}

void tell_of_disk_cache(const EngineOptions& options, const Engine& engine) {
  if (options.cache_dir.empty()) return;
  const DiskCacheStats stats = engine.disk_cache();
  // Nobody asked for one of a model that only reads.
  if (options.cache_dir == default_prefix_folder() && !engine.info().reading.writes) return;
  if (!stats.is_on) say_warning("no cache on disk: " + stats.problem);
}

}  // namespace candor::apps
