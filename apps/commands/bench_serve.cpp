// candor bench serve: a load on a server, or on an engine in this process.

#include "apps/bench/serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/bench/http_load.h"
#include "apps/bench/load_pictures.h"
#include "apps/charts/line_chart.h"
#include "apps/charts/report_page.h"
#include "apps/charts/svg.h"
#include "apps/commands/bench_commands.h"
#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/idle_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "engine/open/device_choice.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

struct BenchServeOptions {
  std::optional<std::string> model, trace, key, svg, html;
  std::vector<std::string> positionals;
  std::optional<int64_t> n_requests, n_prompt, n_new, n_shared, max_in_flight, n_ctx, n_threads, max_running, seed,
      n_burst;
  std::optional<int64_t> disturb, prefix;
  std::optional<double> rate, step_ms, ttft_goal, tpot_goal;
  std::string backend = "auto", kv_type = "auto";
  bool in_process = false, no_prefix_cache = false, fast_weights = false, json = false;
};

EngineOptions engine_options(const BenchServeOptions& o, const std::filesystem::path& model) {
  EngineOptions options;
  options.model_path = model;
  options.backend = engine::settled_device(o.backend);
  options.fast_weights = o.fast_weights;
  options.n_ctx = o.n_ctx.value_or(0);
  options.n_threads = static_cast<int32_t>(o.n_threads.value_or(0));
  options.max_running = static_cast<int32_t>(o.max_running.value_or(16));
  options.max_rows = std::max(options.max_rows, options.max_running);
  options.max_queued = 1 << 16;
  options.step_ms = o.step_ms.value_or(0);
  options.prefix_cache = !o.no_prefix_cache;
  options.kv_type = find_kv_type(o.kv_type);
  return options;
}

Json describe(const Engine& engine) {
  const ModelInfo& info = engine.info();
  Json costs = Json::array();
  for (const StepCosts::Point& point : info.costs.points) costs.push_back({{"rows", point.n_rows}, {"ms", point.ms}});
  return {{"model", info.paths.empty() ? std::string() : info.paths.front().filename().string()},
          {"backend", info.backend_description},
          {"kv_type", info.kv_type},
          {"n_ctx", info.n_ctx},
          {"kv_blocks", info.kv_blocks},
          {"step_costs", costs},
          {"look_back_ns", info.costs.look_back_ns},
          {"attend_ns", info.costs.attend_ns},
          {"out_row_ms", info.costs.out_row_ms}};
}

// n_ctx: 0 = unknown.
LoadSpec load_spec(const BenchServeOptions& o, int32_t n_ctx) {
  constexpr int32_t kNoLimit = 1 << 24;
  LoadSpec spec{.n_requests = o.n_requests.value_or(64),
                .n_prompt = static_cast<int32_t>(o.n_prompt.value_or(256)),
                .n_new = static_cast<int32_t>(o.n_new.value_or(64)),
                .n_burst = o.n_burst.value_or(1),
                .requests_per_s = o.rate.value_or(0),
                .n_ctx = n_ctx > 0 ? n_ctx : kNoLimit,
                .seed = static_cast<uint64_t>(o.seed.value_or(1))};
  if (o.trace) spec.trace = *o.trace;
  return spec;
}

LoadRunOptions run_options(const BenchServeOptions& o) {
  return {.max_in_flight = o.max_in_flight.value_or(0),
          .n_shared = static_cast<int32_t>(o.n_shared.value_or(0)),
          .seed = static_cast<uint64_t>(o.seed.value_or(1))};
}

// What a run tells: as words, and as pictures where it was a load.
struct Output {
  std::string text = {};
  std::vector<Svg> pictures = {};
};

Json report_of(const BenchServeOptions& o, const LoadRun& run, const Load& load, Output& output) {
  for (const LoadRecord& record : run.records) {
    if (record.error.empty()) continue;
    say_warning(record.error);
    break;
  }
  Json report = load_report(run, load, {o.ttft_goal.value_or(0), o.tpot_goal.value_or(0)});
  if (!o.in_process) {  // what only an engine knows
    for (const char* name : {"preemptions", "decode_only_tokens_per_second", "queue_ms"}) report.erase(name);
  }
  output = {load_text(report), load_pictures(run, o.in_process)};
  return report;
}

Result<Json> run_scenario(Engine& engine, const BenchServeOptions& o, Output& output) {
  if (o.disturb) {
    CANDOR_ASSIGN(Json report, disturb_report(engine, static_cast<int32_t>(*o.disturb), 8));
    output.text = disturb_text(report);
    return report;
  }
  if (o.prefix) {
    CANDOR_ASSIGN(Json report, prefix_report(engine, static_cast<int32_t>(*o.prefix)));
    output.text = prefix_text(report);
    return report;
  }
  CANDOR_ASSIGN(const Load load, make_load(load_spec(o, engine.info().n_ctx)));
  return report_of(o, run_load(engine, load, run_options(o)), load, output);
}

bool is_url(const std::string& text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

Result<Json> ask_server(const BenchServeOptions& o, Output& output) {
  CANDOR_ASSIGN(const RemoteServer server,
                find_server(o.positionals.front(), o.key.value_or(""), o.model.value_or("")));
  CANDOR_ASSIGN(const Load load, make_load(load_spec(o, server.n_ctx)));
  Json json = {{"url", server.url}, {"model", server.model}, {"n_ctx", server.n_ctx}};
  json["results"] = report_of(o, run_http_load(server, load, run_options(o)), load, output);
  return json;
}

Result<void> write_load(const BenchServeOptions& o, const Json& json, const Output& output) {
  if (output.pictures.empty()) return {};
  const std::string heading = fmt::format("A load on {}", json.value("url", json.at("model").get<std::string>()));
  if (o.svg) CANDOR_TRY(write_picture_file(*o.svg, stack(heading, output.pictures).document()));
  if (o.html) CANDOR_TRY(write_picture_file(*o.html, to_html(load_page(heading, json, output.pictures))));
  return {};
}

int tell(const BenchServeOptions& o, const Json& json, const Output& output) {
  write_out(o.json ? json.dump(2) + "\n" : output.text);
  const auto written = write_load(o, json, output);
  return written ? kDone : (say_error(written.error().message), kUserInput);
}

int run_remote(const BenchServeOptions& o, const CLI::App& command) {
  if (o.disturb || o.prefix)
    return say_error("bench serve: --disturb and --prefix look into an engine: add --in-process"), kUserInput;
  if (o.positionals.size() > 1)
    return say_error(fmt::format("bench serve takes one server; what is \"{}\"?", o.positionals[1])), kUserInput;
  note_idle(command,
            {"--ctx", "--threads", "--max-running", "--step-ms", "--kv-type", "--device", "--fast-weights",
             "--no-prefix-cache"},
            "it is of an engine here (--in-process), not of a server");
  Output output;
  auto json = ask_server(o, output);
  if (!json) return say_error(json.error().message), kUserInput;
  return tell(o, *json, output);
}

// What the load is made of, where something else decides it.
void note_idle_load(const BenchServeOptions& o, const CLI::App& command) {
  if (o.trace) note_idle(command, {"--prompt", "--new", "--burst"}, "--trace says it");
  if (o.disturb || o.prefix) {
    note_idle(command,
              {"--trace", "--requests", "--rate", "--burst", "--in-flight", "--prompt", "--new", "--shared",
               "--goal-ttft", "--goal-tpot", "--seed", "--svg", "--html"},
              "--disturb and --prefix make their own requests");
  }
  if (o.disturb) note_idle(command, {"--prefix"}, "--disturb is measured instead");
  if (o.in_process) note_idle(command, {"--api-key"}, "an engine here (--in-process) asks for none");
}

int run(const BenchServeOptions& o, const CLI::App& command) {
  note_idle_load(o, command);
  for (const auto& path : {o.svg, o.html}) {
    const auto can_write = check_writable(path);
    if (!can_write) return say_error(can_write.error().message), kUserInput;
  }
  if (!o.in_process && !o.positionals.empty() && is_url(o.positionals.front())) return run_remote(o, command);
  if (!o.in_process)
    return say_error("bench serve: which server? Give its URL, or add --in-process for an engine here"), kUserInput;
  auto choice = choose_model(o.model, o.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("bench serve takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  auto engine = Engine::open(engine_options(o, choice->model));
  if (!engine) return say_error(engine.error().message), kUserInput;
  Output output;
  auto report = run_scenario(**engine, o, output);
  if (!report) return say_error(report.error().message), kUserInput;
  Json json = describe(**engine);
  json["results"] = *report;
  return tell(o, json, output);
}

}  // namespace

void add_bench_serve(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("serve", "many requests at once: TTFT, ITL, TPOT, E2E, goodput");
  const auto o = std::make_shared<BenchServeOptions>();
  constexpr int64_t kMax = 1 << 20;
  command->add_option("target", o->positionals, "[URL | MODEL]");
  command->add_option("-m,--model", o->model, "the model's file; of a server, its name there")->type_name("MODEL");
  command->add_option("--api-key", o->key, "that the server wants")->type_name("KEY");
  command->add_flag("--in-process", o->in_process, "load an engine here, without a server");
  command->add_option("--trace", o->trace, "lengths and times: TIMESTAMP,ContextTokens,GeneratedTokens")
      ->type_name("CSV");
  add_int(*command, "--requests", o->n_requests, 1, kMax, "how many (64)");
  add_number(*command, "--rate", o->rate, 0, 1e6, "requests a second (all at once, or as the trace says)");
  add_int(*command, "--burst", o->n_burst, 1, kMax, "requests that come at the same time (1)");
  add_int(*command, "--in-flight", o->max_in_flight, 1, kMax, "wait for an answer before there are more");
  add_int(*command, "--prompt", o->n_prompt, 1, kMax, "tokens of each prompt (256)");
  add_int(*command, "--new", o->n_new, 1, kMax, "tokens of each answer (64)");
  add_int(*command, "--shared", o->n_shared, 0, kMax, "first tokens that all prompts have in common (0)");
  add_int(*command, "--disturb", o->disturb, 16, kMax, "instead: what reading so long a prompt costs 8 that decode");
  add_int(*command, "--prefix", o->prefix, 33, kMax, "instead: so long a prompt twice, cold and cached");
  add_number(*command, "--goal-ttft", o->ttft_goal, 0, 1e9, "ms that a request of the goodput keeps");
  add_number(*command, "--goal-tpot", o->tpot_goal, 0, 1e9, "ms that a request of the goodput keeps");
  add_int(*command, "-c,--ctx", o->n_ctx, 1, kMax * 1024, "tokens of context (the model's own)");
  add_int(*command, "-t,--threads", o->n_threads, 1, 1024, "threads (see candor doctor)");
  add_int(*command, "--max-running", o->max_running, 1, 4096, "requests computed at once (16)");
  add_number(*command, "--step-ms", o->step_ms, 0, 1e6, "time of a step beside decoding (1.75 times decoding alone)");
  add_kv_type(*command, o->kv_type);
  add_device(*command, o->backend);
  add_int(*command, "-s,--seed", o->seed, 0, INT64_MAX, "of lengths, gaps and prompts (1)");
  add_fast_weights(*command, o->fast_weights);
  command->add_flag("--no-prefix-cache", o->no_prefix_cache, "share nothing");
  command->add_option("--svg", o->svg, "the load over time as pictures, written there")->type_name("FILE");
  command->add_option("--html", o->html, "the whole report as one page, written there")->type_name("FILE");
  command->add_flag("--json", o->json, "as JSON");
  command->callback([o, command, &action] { action = [o, command] { return run(*o, *command); }; });
}

}  // namespace candor::apps
