// candor serve: the HTTP and WebSocket server.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "apps/bench/machine_limits.h"
#include "apps/bench/remembered_costs.h"
#include "apps/commands/commands.h"
#include "apps/commands/page_opener.h"
#include "apps/options/arguments.h"
#include "apps/options/config_file.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/utf8.h"
#include "obs/log.h"
#include "platform/allocator.h"
#include "platform/topology.h"
#include "serve/http/fair_budget.h"
#include "serve/http/server.h"
#include "serve/http/tls_identity.h"
#include "serve/service.h"

namespace candor::apps {
namespace {

constexpr int64_t kMaxInt = 1'000'000'000;
constexpr int64_t kConnections = 4096;

struct ServeOptions {
  GenerationOptions generation;  // what is drafted, and fast weights
  std::vector<std::string> positionals;
  std::optional<std::string> model, key_file, tls_cert, tls_key, model_id, config;
  std::vector<std::string> keys, hosts, origins, aliases;
  std::string host = "127.0.0.1";
  std::string backend = "cpu", kv_type = "auto", log_level = "info";
  std::optional<int64_t> port, n_ctx, n_threads, parallel, max_queued, n_workers, max_n, max_connections, max_per_key,
      body_mb, inflight_mb, drain_seconds;
  bool strict = false;
  bool print_config = false;
  bool no_ui = false;
  bool opens_page = false;
};

bool fails(const std::string& message) {
  say_error(message);
  return false;
}

bool read_origins(const ServeOptions& options, http::AccessOptions& access) {
  for (const std::string& text : options.origins) {
    auto origin = http::parse_origin(text);
    if (!origin) return fails("serve: --allow-origin: " + origin.error().message);
    access.origins.push_back(std::move(*origin));
  }
  return true;
}

// Without hosts: any name.
bool read_hosts(const ServeOptions& options, bool is_local, http::AccessOptions& access) {
  if (!is_local && options.hosts.empty()) return true;
  access.hosts = {"localhost", "127.0.0.1", "[::1]", options.host};
  for (const std::string& text : options.hosts) {
    const auto name = http::host_name(text);
    if (!name || name->size() != text.size())
      return fails(
          fmt::format("serve: --allow-host \"{}\" is not a name alone, such as chat.example.com", clipped(text)));
    access.hosts.push_back(*name);
  }
  return true;
}

// Keys from the options and the file; a public address without any is refused.
bool read_access(const ServeOptions& options, http::AccessOptions& access) {
  for (const std::string& key : options.keys) {
    if (const std::string fault = http::fault_of_secret(key); !fault.empty())
      return fails(fmt::format("serve: --api-key {}", fault));
    access.keys.push_back(http::make_key(fmt::format("key{}", access.keys.size() + 1), key));
  }
  if (options.key_file) {
    auto keys = http::read_key_file(*options.key_file);
    if (!keys) return fails(keys.error().message);
    std::ranges::move(*keys, std::back_inserter(access.keys));
  }
  const bool is_local = http::is_loopback(options.host);
  if (!is_local && access.keys.empty()) {
    return fails(
        fmt::format("serve: --host {} lets others in, and there is no key: add --api-key-file FILE (lines of NAME "
                    "SECRET), or stay on 127.0.0.1",
                    options.host));
  }
  access.scheme = options.tls_cert ? "https" : "http";
  return read_origins(options, access) && read_hosts(options, is_local, access);
}

std::optional<http::TlsFiles> tls_files_of(const ServeOptions& options) {
  if (!options.tls_cert || !options.tls_key) return std::nullopt;
  return http::TlsFiles{.cert = *options.tls_cert, .key = *options.tls_key};
}

// Nothing in `identity` where none is asked for.
bool read_identity(const ServeOptions& options, std::shared_ptr<http::TlsIdentity>& identity) {
  if (options.tls_cert.has_value() != options.tls_key.has_value()) {
    return fails(options.tls_cert ? "serve: --tls-cert comes with --tls-key FILE, the private key that belongs to it"
                                  : "serve: --tls-key comes with --tls-cert FILE, the certificate that it belongs to");
  }
  const auto files = tls_files_of(options);
  if (!files) return true;
  auto loaded = http::TlsIdentity::load(*files);
  if (!loaded) return fails("serve: " + loaded.error().message);
  identity = std::move(*loaded);
  catch_hang_ups();
  return true;
}

void announce(const http::TlsIdentity& identity, const obs::Log& log) {
  log.info("TLS: " + identity.description());
  for (const std::string& warning : identity.warnings()) log.warning("TLS: " + warning);
}

// The pair as it now is in its files. One that cannot be used leaves the old one in its place.
void reload_identity(http::Server& server, const http::TlsFiles& files, const obs::Log& log) {
  auto identity = http::TlsIdentity::load(files);
  if (!identity) return log.error("TLS: the pair in use stays, the new one cannot be used: " + identity.error().message);
  announce(**identity, log);
  server.use(std::move(*identity));
}

EngineOptions engine_options_of(const ServeOptions& options, const std::filesystem::path& path) {
  GenerationOptions generation = options.generation;
  generation.n_ctx = options.n_ctx;
  generation.n_threads = options.n_threads;
  generation.backend = options.backend;
  generation.kv_type = options.kv_type;
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
  const uint64_t connections = options.tls_cert ? kTlsBytes * options.max_connections.value_or(kConnections) : 0;
  const uint64_t taken = info.kv_bytes + connections;
  const uint64_t left = available == 0 ? kUnknown : available - std::min(available, taken);
  return std::max({kLeast, options.body_mb.value_or(16) << 20, static_cast<int64_t>(left / 4)});
}

serve::ServiceOptions service_options_of(const ServeOptions& options, const std::filesystem::path& path,
                                          const ModelInfo& info) {
  serve::ServiceOptions service;
  service.limits.model = options.model_id.value_or(path.stem().string());
  service.limits.aliases = options.aliases;
  service.limits.n_ctx = info.n_ctx;
  service.limits.dim = info.dim;
  if (const auto limits = known_limits(info.n_threads)) service.read_limit = limits->dram_read_bytes;
  service.limits.max_choices = options.max_n.value_or(service.limits.max_choices);
  service.limits.is_strict = options.strict;
  service.n_workers = static_cast<int32_t>(options.n_workers.value_or(service.n_workers));
  service.n_places = places_of(options);
  service.max_per_key = static_cast<int32_t>(options.max_per_key.value_or(0));
  service.inflight_bytes = inflight_bytes_of(options, info);
  return service;
}

// Until Ctrl-C or SIGTERM; then what is in work may end within the drain time, or is told that it cannot.
void serve_until_interrupted(http::Server& server, serve::Service& service, std::chrono::seconds drain_time,
                             const std::function<void()>& now_and_then) {
  constexpr std::chrono::milliseconds kPoll{50};
  constexpr std::chrono::seconds kGoodbye{2};
  while (!interrupted()) {
    std::this_thread::sleep_for(kPoll);
    now_and_then();
  }
  service.begin_drain();
  if (server.drain(drain_time)) return;
  service.abort_all();
  server.drain(kGoodbye);
}

std::string page_address(const ServeOptions& options, uint16_t port) {
  const bool is_any = options.host == "0.0.0.0" || options.host == "::";
  return fmt::format("{}://{}:{}/", options.tls_cert ? "https" : "http", is_any ? "localhost" : options.host, port);
}

int serve(const ServeOptions& options) {
  auto choice = choose_model(options.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("serve: what is \"{}\"?", choice->texts.front())), kUserInput;
  const auto level = obs::parse_log_level(options.log_level);
  if (!level) return say_error(level.error().message), kUserInput;
  http::AccessOptions access;
  std::shared_ptr<http::TlsIdentity> identity;
  if (!read_access(options, access) || !read_identity(options, identity)) return kUserInput;
  if (options.opens_page && options.no_ui)
    return say_error("ui: --no-ui leaves out the page that ui opens; serve has it"), kUserInput;
  if (options.inflight_mb && *options.inflight_mb < options.body_mb.value_or(16)) {
    return say_error(fmt::format("serve: --max-inflight-mb {} holds no body of --max-body-mb {}; more of the one, or "
                                 "less of the other",
                                 *options.inflight_mb, options.body_mb.value_or(16))),
           kUserInput;
  }

  platform::give_freed_memory_back();
  int code = kDone;
  EngineOptions engine_options = engine_options_of(options, choice->model);
  RememberedCosts costs(engine_options);
  serve::StepHistory steps;
  engine_options.costs = costs.recall();
  const auto engine = open_engine(engine_options, code);
  if (!engine) return code;
  if (!engine_options.costs) costs.keep(engine->info().costs);
  engine->on_step([&costs, &steps, remembers = engine_options.costs.has_value()](const StepReport& report) {
    steps.take(report);
    if (remembers) costs.take(report);
  });
  const auto sink = obs::make_stderr_sink();
  const obs::Log log(*sink, *level);
  auto service_options = service_options_of(options, choice->model, engine->info());
  service_options.access = std::move(access);
  service_options.steps = &steps;
  service_options.has_page = !options.no_ui;
  serve::Service service(*engine, std::move(service_options), log);
  auto server_options = server_options_of(options);
  server_options.tls = identity;
  auto server = http::Server::start(server_options, service);
  if (!server) return say_error(server.error().message), kUserInput;
  if (identity) announce(*identity, log);
  write_err(fmt::format("candor serves {} at {}://{}:{} (context {}, {} at once)\n",
                        choice->model.filename().string(), identity ? "https" : "http", options.host,
                        (*server)->port(), engine->info().n_ctx, options.parallel.value_or(16)));
  service.say_forms();
  if (!options.no_ui) show_page(page_address(options, (*server)->port()), options.opens_page);
  serve_until_interrupted(**server, service, std::chrono::seconds(options.drain_seconds.value_or(30)), [&] {
    if (take_hang_up()) reload_identity(**server, *tls_files_of(options), log);
    if (!costs.forget_if_off()) return;
    log.info("steps take other times than an earlier start measured: they are measured anew at the next start");
  });
  return kDone;
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

void add_network_options(CLI::App& command, ServeOptions& o) {
  command.add_option("--host", o.host, "address to listen on; other than loopback needs a key (127.0.0.1)")
      ->type_name("ADDRESS")
      ->capture_default_str();
  add_int(command, "--port", o.port, 0, 65535, "0 = any free one (8080)")->default_str("8080");
  command.add_option("--api-key", o.keys, "a key that clients must show; better in a file")->type_name("KEY");
  command.add_option("--api-key-file", o.key_file, "lines of NAME SECRET")->type_name("FILE");
  command.add_option("--tls-cert", o.tls_cert, "serve https with this certificate chain (PEM); SIGHUP reads it again")
      ->type_name("FILE");
  command.add_option("--tls-key", o.tls_key, "its private key (PEM, without a passphrase)")->type_name("FILE");
  command.add_option("--allow-host", o.hosts, "a further name in Host")->type_name("NAME");
  command.add_option("--allow-origin", o.origins, "a web page that may ask: https://chat.example.com")
      ->type_name("ORIGIN");
  add_int(command, "--max-connections", o.max_connections, 1, 100'000, "(4096)")->default_str("4096");
  add_int(command, "--max-per-key", o.max_per_key, 1, kMaxInt,
          "answers in work for one key (--parallel and --max-queued together; of several keys three quarters)");
  add_int(command, "--max-inflight-mb", o.inflight_mb, 1, 1 << 20,
          "all requests and replies held at once (a quarter of the memory that the model leaves, at least 64)");
  add_int(command, "--max-body-mb", o.body_mb, 1, 1024, "largest request body (16)")->default_str("16");
  add_int(command, "--max-n", o.max_n, 1, 128, "most answers to one prompt (128)")->default_str("128");
  add_int(command, "--workers", o.n_workers, 1, 64, "threads for JSON, templates, tokens (2)")->default_str("2");
  add_int(command, "--drain-seconds", o.drain_seconds, 0, 3600, "for replies in work, at the end (30)")
      ->default_str("30");
  command.add_option("--log-level", o.log_level, "debug, info, warning, error, off (info)")
      ->type_name("LEVEL")
      ->capture_default_str();
  command.add_flag("--no-ui", o.no_ui, "no page for browsers at /");
  command.add_flag("--strict", o.strict, "unknown fields of a request are errors");
}

void add_server(CLI::App& app, const char* name, const char* help, bool opens_page, Action& action) {
  CLI::App* command = app.add_subcommand(name, help);
  const auto options = std::make_shared<ServeOptions>();
  options->opens_page = opens_page;
  command->add_option("model_argument", options->positionals, "[MODEL]")->configurable(false);
  command->add_option("-m,--model", options->model, "GGUF file; left out: the shipped model")->type_name("MODEL");
  command->add_option("--model-id", options->model_id, "the name that clients ask for (the file's)")->type_name("NAME");
  command->add_option("--alias", options->aliases, "a further name for it")->type_name("NAME");
  add_int(*command, "-c,--ctx-size", options->n_ctx, 0, kMaxInt, "context in tokens (the model's)");
  add_int(*command, "-t,--threads", options->n_threads, 0, 4096, "0 = what this machine advises");
  add_int(*command, "--parallel", options->parallel, 1, 4096, "requests computed at once (16)")->default_str("16");
  add_int(*command, "--max-queued", options->max_queued, 0, kMaxInt, "requests waiting; beyond: 429 (128)")
      ->default_str("128");
  add_choice(*command, "--backend", options->backend, {"cpu", "reference"}, "what computes (cpu)")
      ->capture_default_str();
  add_choice(*command, "--kv-type", options->kv_type, {"auto", "f32", "bf16", "q8_0"},
             "how keys and values are kept (auto)")
      ->capture_default_str();
  add_fast_weights(*command, options->generation.fast_weights);
  add_speculation_options(*command, options->generation);
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
