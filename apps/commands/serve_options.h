#pragma once
// The options of `candor serve` and `candor ui`, as they stand on the command line and in the TOML file.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/options/generation_options.h"

namespace candor::apps {

constexpr int64_t kMostCount = 1'000'000'000;

struct ServeOptions {
  GenerationOptions generation;  // how the engine runs a model
  std::vector<std::string> positionals;
  std::vector<std::string> models;
  std::optional<std::string> models_dir, default_model, keep_alive;
  std::optional<int64_t> models_mb, max_loaded;
  bool has_pulled = false;
  std::optional<std::string> key_file, tls_cert, tls_key, model_id, config, batch_dir, adapter_dir;
  std::vector<std::string> keys, hosts, origins, aliases;
  std::string host = "127.0.0.1";
  std::string log_level = "info";
  std::string on_device_lost = "exit";
  std::optional<int64_t> port, parallel, max_queued, n_workers, max_n, max_connections, max_per_key, body_mb,
      inflight_mb, drain_seconds;
  bool strict = false;
  bool ranks_by_likeness = false;
  bool allows_image_urls = false;
  bool restarts = false;
  bool print_config = false;
  bool no_ui = false;
  bool opens_page = false;
};

// How the engine runs, of commands that answer through the service: the context, threads and ranks; and what computes,
// in which formats, with which drafts. otherwise: what holds where --ranks is left out.
void add_machine_options(CLI::App& command, GenerationOptions& options, const std::string& otherwise = "1");
void add_compute_options(CLI::App& command, GenerationOptions& options);
// Who may connect, to what, and how much of it at once.
void add_network_options(CLI::App& command, ServeOptions& options);
// Which models there are, where there are several.
void add_several_options(CLI::App& command, ServeOptions& options);

}  // namespace candor::apps
