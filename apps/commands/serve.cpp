// candor serve: the HTTP and WebSocket server.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "apps/bench/machine_limits.h"
#include "apps/bench/remembered_costs.h"
#include "apps/commands/commands.h"
#include "apps/commands/measured_steps.h"
#include "apps/commands/page_opener.h"
#include "apps/commands/serve_door.h"
#include "apps/commands/serve_options.h"
#include "apps/commands/served_models.h"
#include "apps/options/arguments.h"
#include "apps/options/config_file.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"
#include "candor/engine.h"
#include "engine/open/mpi_ranks.h"
#include "engine/open/rank_places.h"
#include "net/public_files.h"
#include "obs/log.h"
#include "platform/allocator.h"
#include "platform/topology.h"
#include "serve/batch/batch_store.h"
#include "serve/core/model_loader.h"
#include "serve/core/models.h"
#include "serve/core/reply.h"
#include "serve/http/access.h"
#include "serve/http/fair_budget.h"
#include "serve/http/server.h"
#include "serve/service.h"

namespace candor::apps {
namespace {

constexpr int64_t kConnections = 4096;

bool fails(const std::string& message) {
  say_error(message);
  return false;
}

EngineOptions engine_options_of(const ServeOptions& options, const std::filesystem::path& path) {
  GenerationOptions generation = options.generation;
  generation.n_ranks = generation.n_ranks.value_or(engine::advised_ranks());
  EngineOptions engine = engine_options(generation, path);
  engine.max_running = static_cast<int32_t>(options.parallel.value_or(16));
  engine.max_rows = std::max(engine.max_rows, engine.max_running);
  engine.max_queued = static_cast<int32_t>(options.max_queued.value_or(128));
  return engine;
}

http::ServerOptions server_options_of(const ServeOptions& options) {
  http::ServerOptions server;
  server.host = options.host;
  server.port = static_cast<uint16_t>(options.port.value_or(8080));
  server.max_connections = static_cast<int32_t>(options.max_connections.value_or(kConnections));
  server.body_bytes = static_cast<uint64_t>(options.body_mb.value_or(16)) << 20;
  return server;
}

// Answers that the engine computes at once, and those that wait for it.
int32_t places_of(const ServeOptions& options) {
  return static_cast<int32_t>(options.parallel.value_or(16) + options.max_queued.value_or(128));
}

// A quarter of what the model leaves of the memory, where nothing else is asked for. K/V that is not yet used is not
// yet taken.
int64_t inflight_bytes_of(const ServeOptions& options, const ModelInfo& info) {
  constexpr int64_t kLeast = 64 << 20;
  constexpr uint64_t kUnknown = 1u << 30;
  constexpr uint64_t kTlsBytes = 100'000;  // of a connection: two pairs of record buffers, and OpenSSL's state
  if (options.inflight_mb) return *options.inflight_mb << 20;
  const uint64_t available = platform::read_topology().memory_available_bytes;
  const auto n_connections = static_cast<uint64_t>(options.max_connections.value_or(kConnections));
  const uint64_t connections = options.tls_cert ? kTlsBytes * n_connections : 0;
  const uint64_t taken = info.kv_bytes + connections;
  const uint64_t left = available == 0 ? kUnknown : available - std::min(available, taken);
  return std::max({kLeast, options.body_mb.value_or(16) << 20, static_cast<int64_t>(left / 4)});
}

// What is left of the memory beside requests and replies, where nothing else is asked for. 0: unknown.
uint64_t models_bytes_of(const ServeOptions& options, int64_t inflight_bytes) {
  if (options.models_mb) return static_cast<uint64_t>(*options.models_mb) << 20;
  const uint64_t available = platform::read_topology().memory_available_bytes;
  const auto inflight = static_cast<uint64_t>(inflight_bytes);
  return available > inflight ? available - inflight : available;
}

// One half of the workers waits for images at most.
std::function<serve::FetchImage()> image_fetches(int32_t n_workers) {
  const auto door =
      std::make_shared<client::PublicFileDoor>(client::PublicFileRules{.n_at_once = std::max(1, n_workers / 2)});
  return [door] {
    const auto files = std::make_shared<client::PublicFiles>(door);
    return serve::FetchImage([files](const std::string& url) { return files->fetch(url); });
  };
}

serve::ServiceOptions service_options_of(const ServeOptions& options, const std::filesystem::path& path,
                                         const ModelInfo& info) {
  serve::ServiceOptions service;
  service.limits.model = options.model_id.value_or(path.stem().string());
  service.limits.aliases = options.aliases;
  service.limits.take_from(info);
  service.limits.ranks_by_likeness = options.ranks_by_likeness;
  if (const auto limits = known_limits(info)) service.read_limit = limits->dram_read_bytes;
  service.limits.max_choices = options.max_n.value_or(service.limits.max_choices);
  service.limits.is_strict = options.strict;
  service.limits.adapter_dir = options.adapter_dir.value_or("");
  service.n_workers = static_cast<int32_t>(options.n_workers.value_or(service.n_workers));
  if (options.allows_image_urls) service.limits.fetches_images = image_fetches(service.n_workers);
  service.n_places = places_of(options);
  service.max_per_key = static_cast<int32_t>(options.max_per_key.value_or(0));
  service.inflight_bytes = inflight_bytes_of(options, info);
  return service;
}

// nullptr where none are taken. A batch leaves half of the engine to clients.
Result<std::unique_ptr<serve::BatchStore>> open_batches(const ServeOptions& options, const std::string& model) {
  if (!options.batch_dir) return std::unique_ptr<serve::BatchStore>();
  const int64_t n_at_once = std::max<int64_t>(1, options.parallel.value_or(16) / 2);
  return serve::BatchStore::open(
      {.folder = *options.batch_dir, .n_at_once = static_cast<int32_t>(n_at_once), .model = model});
}

// mpirun lets its ranks live for a second once one of them is lost, or it is told to end.
void wait_for_mpirun(http::Server& server) {
  constexpr std::chrono::milliseconds kGrace{400};
  if (!server.drain(kGrace)) engine::lose_mpi("mpirun ends the ranks: one of them is lost, or it was told to end");
}

// Until Ctrl-C or SIGTERM, or until a rank is lost; then what is in work may end within the drain time, or is told that
// it cannot.
Result<void> serve_until_interrupted(http::Server& server, serve::Service& service, std::chrono::seconds drain_time,
                                     const std::function<void()>& now_and_then) {
  constexpr std::chrono::milliseconds kPoll{50};
  constexpr std::chrono::seconds kGoodbye{2};
  Result<void> health;
  while (!interrupted() && health) {
    std::this_thread::sleep_for(kPoll);
    now_and_then();
    health = service.models().health();
  }
  service.begin_drain();
  if (interrupted() && engine::joined_ranks()) {
    wait_for_mpirun(server);
    health = service.models().health();
  }
  if (server.drain(health ? drain_time : kGoodbye)) return health;
  service.abort_all();
  server.drain(kGoodbye);
  return health;
}

std::string page_address(const ServeOptions& options, uint16_t port) {
  const bool is_any = options.host == "0.0.0.0" || options.host == "::";
  return fmt::format("{}://{}:{}/", options.tls_cert ? "https" : "http", is_any ? "localhost" : options.host, port);
}

// For the operator.
struct Served {
  std::string models{};
  std::string context{};  // "context 2048, ", or nothing
};

std::string adapters_text(const Engine& engine) {
  std::string names;
  for (const AdapterInfo& adapter : engine.adapters()) names += (names.empty() ? "" : ", ") + adapter.name;
  return names.empty() ? "" : fmt::format(" and its adapters {}", names);
}

// From the first connection to the last.
int run_server(const ServeOptions& options, serve::Service& service, Door& door, const obs::Log& log,
               const Served& what, const std::function<bool()>& forgets_costs) {
  auto server_options = server_options_of(options);
  server_options.tls = door.identity;
  auto server = http::Server::start(server_options, service);
  if (!server) return say_error(server.error().message), kUserInput;
  door.was_open = true;
  if (door.identity) announce(*door.identity, log);
  write_err(fmt::format("candor serves {} at {}://{}:{} ({}{} at once)\n", what.models,
                        door.identity ? "https" : "http", options.host, (*server)->port(), what.context,
                        options.parallel.value_or(16)));
  service.say_forms();
  if (!options.no_ui) show_page(page_address(options, (*server)->port()), options.opens_page);
  const std::chrono::seconds drain_time(options.drain_seconds.value_or(30));
  const auto health = serve_until_interrupted(**server, service, drain_time, [&] {
    if (take_hang_up()) reload_identity(**server, *door.tls, log);
    if (!forgets_costs()) return;
    log.info("steps take other times than an earlier start measured: they are measured anew at the next start");
  });
  if (health) return kDone;
  say_error(health.error().message);
  return exit_code(health.error());
}

int serve_one(const ServeOptions& options, Door& door, const std::filesystem::path& path) {
  int code = kDone;
  EngineOptions engine_options = engine_options_of(options, path);
  RememberedCosts costs(engine_options);
  MeasuredSteps steps;
  engine_options.costs = costs.recall();
  const auto open = [&steps](const EngineOptions& o, const LoadProgress& progress) { return steps.open(o, progress); };
  const auto engine = open_engine(engine_options, code, open);
  if (!engine) return code;
  if (!engine_options.costs) costs.keep(engine->info().costs);
  engine->on_step([&costs, &steps, remembers = engine_options.costs.has_value()](const StepReport& report) {
    steps.take(report);
    if (remembers) costs.take(report);
  });
  const auto sink = obs::make_stderr_sink();
  const obs::Log log(*sink, door.level);
  auto service_options = service_options_of(options, path, engine->info());
  service_options.access = door.access;
  service_options.steps = &steps.history();
  const auto batches = open_batches(options, serve::fingerprint_of_all(*engine));
  if (!batches) return say_error(batches.error().message), kUserInput;
  service_options.batches = batches->get();
  serve::Service service(*engine, std::move(service_options), log);
  const Served what{path.filename().string() + adapters_text(*engine),
                    fmt::format("context {}, {}", engine->info().n_ctx, ranks_text(engine_options))};
  return run_server(options, service, door, log, what, [&costs] { return costs.forget_if_off(); });
}

bool is_several(const ServeOptions& options) {
  return options.models.size() + options.positionals.size() > 1 || options.models_dir || options.has_pulled;
}

// Options that mean one model, where there are several, or several, where there is one.
bool fits_models(const ServeOptions& options) {
  if (options.keep_alive && !keep_alive_of(*options.keep_alive))
    return fails(
        fmt::format("serve: --keep-alive \"{}\" is neither seconds nor a duration such as 5m or 1h30m (-1: "
                    "until its room is needed)",
                    clipped(*options.keep_alive)));
  const bool wants_several = options.default_model || options.keep_alive || options.models_mb || options.max_loaded;
  if (!is_several(options) && wants_several)
    return fails(
        "serve: --default, --keep-alive, --models-memory-mb and --max-loaded are for several models: give more "
        "with -m, or --models-dir FOLDER, or --pulled");
  if (!is_several(options)) return true;
  if (options.model_id || !options.aliases.empty())
    return fails("serve: --model-id and --alias name one model; of several, each is named as -m NAME=FILE");
  if (options.generation.draft) return fails("serve: --draft belongs to one model, and there are several");
  return true;
}

// Every model that is given is there, and could be loaded by itself.
bool read_given(const ServeOptions& options, ServedModelsOptions& models) {
  std::vector<std::string> texts = options.positionals;
  texts.insert(texts.end(), options.models.begin(), options.models.end());
  for (const std::string& text : texts) {
    auto given = read_given_model(text);
    if (!given) return fails("serve: " + given.error().message);
    const auto is_same = [&](const GivenModel& other) { return other.name == given->name; };
    if (std::ranges::any_of(models.given, is_same))
      return fails(fmt::format("serve: two models are named \"{}\": name one of them, as -m NAME={}", given->name,
                               given->path.string()));
    if (const auto plan = Engine::plan(models.engine(given->path)); !plan)
      return fails(fmt::format("serve: {}: {}", given->path.string(), plan.error().message));
    models.given.push_back(std::move(*given));
  }
  std::error_code ignored;
  if (options.models_dir && !std::filesystem::is_directory(*options.models_dir, ignored))
    return fails(fmt::format("serve: --models-dir {} is no folder", clipped(*options.models_dir)));
  if (options.models_dir) models.folder = *options.models_dir;
  models.has_pulled = options.has_pulled;
  return true;
}

int serve_several(const ServeOptions& options, Door& door) {
  const auto sink = obs::make_stderr_sink();
  const obs::Log log(*sink, door.level);
  ServedModelsOptions given;
  given.engine = [&options](const std::filesystem::path& path) { return engine_options_of(options, path); };
  if (!read_given(options, given)) return kUserInput;
  ServedModels loader(std::move(given), log);
  const auto there = loader.list();
  if (there.empty()) {
    return say_error("serve: there is no model: neither GGUF files nor folders of safetensors with a config.json"),
           kUserInput;
  }
  const auto is_default = [&](const serve::ModelSource& one) { return one.name == *options.default_model; };
  if (options.default_model && std::ranges::none_of(there, is_default))
    return say_error(fmt::format("serve: --default \"{}\" is none of the models; the first is \"{}\"",
                                 clipped(*options.default_model), there.front().name)),
           kUserInput;
  if (!options.generation.adapters.empty())
    return say_error("serve: --adapter is for one model; of several, clients load adapters from --adapter-dir"),
           kUserInput;
  serve::ServiceOptions service_options = service_options_of(options, {}, {});
  service_options.access = door.access;
  serve::ModelsOptions models;
  models.default_model = options.default_model.value_or(there.front().name);
  if (options.keep_alive) models.keep_alive = *keep_alive_of(*options.keep_alive);
  models.max_loaded = static_cast<size_t>(options.max_loaded.value_or(0));
  models.memory_bytes = models_bytes_of(options, service_options.inflight_bytes);
  const auto batches = open_batches(options, {});
  if (!batches) return say_error(batches.error().message), kUserInput;
  service_options.batches = batches->get();
  serve::Service service(loader, models, std::move(service_options), log);
  const std::string what = fmt::format("{} models (\"{}\" where none is named; {} for all)", there.size(),
                                       models.default_model, format_bytes(models.memory_bytes));
  return run_server(options, service, door, log, {what, ""}, [&loader] { return loader.forget_costs_that_are_off(); });
}

// Again and again where ranks are lost and that is asked for, or a GPU and the CPU shall go on; not where they did not
// start.
int serve_and_restart(ServeOptions& options, Door& door, const std::function<int()>& serve_once) {
  while (true) {
    door.was_open = false;
    const int code = serve_once();
    if (!door.was_open || interrupted()) return code;
    if (code == kDeviceLost && options.on_device_lost == "cpu") {
      options.generation.backend = "cpu";
      write_err("candor: the server goes on with the CPU, until it is started again\n");
    } else if (code == kRankLost && options.restarts) {
      write_err("candor: the ranks are started again\n");
    } else {
      return code;
    }
  }
}

int serve(ServeOptions& options) {
  if (options.opens_page && options.no_ui)
    return say_error("ui: --no-ui leaves out the page that ui opens; serve has it"), kUserInput;
  if (!fits_models(options)) return kUserInput;
  if (options.restarts && engine::joined_ranks())
    return say_error(
               "--restart: ranks that mpirun started cannot be started again from here; let what started mpirun do it"),
           kUserInput;
  if (is_several(options)) {
    auto door = open_door(options);
    if (!door) return say_error(door.error().message), kUserInput;
    platform::give_freed_memory_back();
    return serve_and_restart(options, *door, [&] { return serve_several(options, *door); });
  }
  const auto model = options.models.empty() ? std::nullopt : std::optional(options.models.front());
  auto choice = choose_model(model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("serve: what is \"{}\"?", choice->texts.front())), kUserInput;
  auto door = open_door(options);
  if (!door) return say_error(door.error().message), kUserInput;
  platform::give_freed_memory_back();
  return serve_and_restart(options, *door, [&] { return serve_one(options, *door, choice->model); });
}

// The lines of options that have neither a value nor a default say nothing, and would not be read back.
std::string without_unset(const std::string& config) {
  std::string kept;
  std::string comments;
  for (size_t at = 0, end = 0; at < config.size(); at = end + 1) {
    end = std::min(config.find('\n', at), config.size());
    const std::string line = config.substr(at, end - at);
    const bool is_value = !line.empty() && line.front() != '#';
    if (line.ends_with("=\"\"") || line.ends_with("=[]")) {
      comments.clear();
    } else if (is_value) {
      kept += std::exchange(comments, {}) + line + "\n";
    } else {
      comments += line + "\n";
    }
  }
  return kept;
}

// What follows from other options, and from the machine, is said as well.
int print_config(const ServeOptions& options, CLI::App& command) {
  size_t n_keys = options.keys.size();
  if (options.key_file) {
    const auto keys = http::read_key_file(*options.key_file);
    if (!keys) return say_error(keys.error().message), kUserInput;
    n_keys += keys->size();
  }
  const int64_t per_key = http::FairBudget(places_of(options), n_keys).most_per_key();
  command.get_option("--max-per-key")->default_str(std::to_string(per_key));
  std::string config = without_unset(command.config_to_str(true, true));
  if (!options.inflight_mb)
    config += "\n# max-inflight-mb: a quarter of the memory that the model leaves, at least 64\n";
  write_out(config);
  return kDone;
}

void add_server(CLI::App& app, const char* name, const char* help, bool opens_page, Action& action) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto options = std::make_shared<ServeOptions>();
  options->opens_page = opens_page;
  command->add_option("model_argument", options->positionals, "[MODEL]")->configurable(false);
  command
      ->add_option("-m,--model", options->models, "GGUF file; left out: the shipped model; again, NAME=FILE: several")
      ->type_name("MODEL")
      ->allow_extra_args(false);
  add_several_options(*command, *options);
  command->add_option("--model-id", options->model_id, "the name that clients ask for (the file's)")->type_name("NAME");
  command->add_option("--alias", options->aliases, "a further name for it")->type_name("NAME");
  add_machine_options(*command, options->generation, "one for each NUMA domain");
  add_disk_cache(*command, options->generation.disk_cache);
  command->add_flag("--restart", options->restarts, "start the ranks again where one is lost, instead of ending");
  add_choice(*command, "--on-device-lost", options->on_device_lost, {"cpu", "exit"},
             "where the GPU fails: go on with the CPU, or end (exit)");
  add_int(*command, "--parallel", options->parallel, 1, 4096, "requests computed at once (16)")->default_str("16");
  add_int(*command, "--max-queued", options->max_queued, 0, kMostCount, "requests waiting; beyond: 429 (128)")
      ->default_str("128");
  add_compute_options(*command, options->generation);
  add_network_options(*command, *options);
  const auto config = std::make_shared<ConfigFile>(*command);
  command->config_formatter(config);
  command->add_option("--config", options->config, "a TOML file with the same names")
      ->type_name("FILE")
      ->configurable(false);
  command->add_flag("--print-config", options->print_config, "print what is in effect as TOML, and stop")
      ->configurable(false);
  command->callback([options, command, config, &action] {
    if (options->config) config->apply(*options->config);
    action = [options, command] {
      if (!options->print_config) return serve(*options);
      return print_config(*options, *command);
    };
  });
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  add_server(app, "serve", "the HTTP and WebSocket server, as OpenAI's clients know it", false, action);
}

void add_ui(CLI::App& app, Action& action) {
  add_server(app, "ui", "the server, and its page in your browser", true, action);
}

}  // namespace candor::apps
