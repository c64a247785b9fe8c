// candor bench: the machine's limits, and prefill and decode beside them.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/generate.h"
#include "apps/bench/generate_report.h"
#include "apps/bench/machine_limits.h"
#include "apps/charts/line_chart.h"
#include "apps/charts/report_page.h"
#include "apps/commands/bench_commands.h"
#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "backend/all/gpus.h"
#include "backend/backend.h"
#include "backend/op_specs.h"
#include "base/error.h"
#include "candor/options.h"
#include "engine/open/device_choice.h"
#include "kernels/kernels.h"
#include "kernels/limits.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

std::string ops_text(double a_second, std::string_view unit) {
  const bool is_tera = a_second >= 5e10;
  return fmt::format("{:.2f} {}{}/s", a_second / (is_tera ? 1e12 : 1e9), is_tera ? 'T' : 'G', unit);
}

int bench_limits(bool json) {
  const auto table = kernels::select_table_from_environment();
  if (!table) return say_error(table.error().message), kUserInput;
  const int32_t n_threads = platform::advise_threads(platform::read_topology()).n_threads;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  std::string text = fmt::format("{}\n{:>8} {:>14} {:>14} {:>14} {:>14} {:>14}\n", (*table)->description, "threads",
                                 "DRAM read", "L2 read", "int8", "bf16", "f32");
  for (int32_t n = 1; n <= n_threads; n = n == n_threads ? n + 1 : std::min(n * 2, n_threads)) {
    const auto measured = measure_limits(n);
    if (!measured) return say_error(measured.error().message), kUserInput;
    const kernels::MachineLimits& limits = *measured;
    report.push_back(limits_json(limits, n));
    text += fmt::format("{:>8} {:>9.1f} GB/s {:>9.1f} GB/s {:>14} {:>14} {:>14}\n", n, limits.dram_read_bytes / 1e9,
                        limits.l2_read_bytes / 1e9, ops_text(limits.int8_ops, "OP"),
                        ops_text(limits.bf16_flops, "FLOP"), ops_text(limits.f32_flops, "FLOP"));
  }
  for (const backend::GpuLimits& gpu : backend::measure_gpus()) {
    report.push_back({{"gpu", gpu.name},
                      {"read_bytes_per_second", gpu.read_bytes},
                      {"int8_ops_per_second", gpu.int8_ops},
                      {"f32_flops_per_second", gpu.f32_flops}});
    text += fmt::format("{}: memory {:.1f} GB/s, int8 {}, f32 {}\n", gpu.name, gpu.read_bytes / 1e9,
                        ops_text(gpu.int8_ops, "OP"), ops_text(gpu.f32_flops, "FLOP"));
  }
  write_out(json ? report.dump(2) + "\n" : text);
  return kDone;
}

// Of what computes; of processors the best that was ever measured, since memory may have two speeds
// (docs/performance.md, "Measuring"). A GPU takes BF16 by multiply-adds of floats (docs/gpu.md).
Result<kernels::MachineLimits> limits_of(const backend::BackendInfo& info) {
  if (info.device_bytes == 0) {
    CANDOR_ASSIGN(const kernels::MachineLimits measured, measure_limits(info.n_threads));
    return known_limits(info.n_threads).value_or(measured);
  }
  const auto gpus = backend::measure_gpus();
  if (gpus.empty()) return kernels::MachineLimits{};
  const backend::GpuLimits& gpu = gpus.front();
  return kernels::MachineLimits{.dram_read_bytes = gpu.read_bytes,
                                .int8_ops = gpu.int8_ops,
                                .bf16_flops = gpu.f32_flops,
                                .f32_flops = gpu.f32_flops};
}

struct BenchOptions {
  std::optional<std::string> model;
  std::vector<std::string> positionals;
  std::vector<int64_t> prompts = {512}, batches = {1};
  std::optional<int64_t> n_new, n_threads, n_ranks, repetitions, n_shared;
  std::optional<std::string> svg, html;
  std::string backend = "auto";
  bool no_kv_cache = false, fast_weights = false, json = false;
};

// Whole blocks.
int32_t shared_tokens(const BenchOptions& options) {
  const int64_t n = options.n_shared.value_or(0);
  return static_cast<int32_t>(n - n % backend::kBlockTokens);
}

// Where the loop without a K/V cache is asked for, each case is measured both ways, for the slowdown.
std::vector<GenerateCase> cases_of(const BenchOptions& options) {
  std::vector<GenerateCase> cases;
  for (const int64_t prompt : options.prompts) {
    for (const int64_t batch : options.batches) {
      cases.push_back({static_cast<int32_t>(prompt), static_cast<int32_t>(options.n_new.value_or(32)),
                       static_cast<int32_t>(batch), true, shared_tokens(options)});
      if (!options.no_kv_cache) continue;
      cases.push_back(cases.back());
      cases.back().use_kv_cache = false;
    }
  }
  return cases;
}

// A machine that rested is slow at first, which would be told of the first case alone.
Result<void> warm_up(GenerateBench& bench, const GenerateCase& run_case) {
  constexpr double kLong_s = 1;
  for (double spent_s = 0; spent_s < kLong_s;) {
    CANDOR_ASSIGN(const GenerateTimes times,
                  bench.run({run_case.n_prompt, 1, run_case.n_batch, true, run_case.n_shared}));
    spent_s += times.prefill_s + times.decode_s;
  }
  return {};
}

Result<MeasuredCase> measure(GenerateBench& bench, const GenerateCase& run_case, int64_t repetitions) {
  MeasuredCase measured{run_case, {}, {}, {}};
  for (int64_t i = -1; i < repetitions; ++i) {
    CANDOR_ASSIGN(const GenerateTimes times, bench.run(run_case));
    if (i < 0) continue;  // warm-up
    measured.prefill.push_back(static_cast<double>(run_case.n_prefilled()) / times.prefill_s);
    measured.decode.push_back(run_case.n_batch * run_case.n_new / times.decode_s);
    measured.traffic = times.decode_traffic;
  }
  std::ranges::sort(measured.prefill);
  std::ranges::sort(measured.decode);
  return measured;
}

Result<void> write_report(const nlohmann::ordered_json& report, const BenchOptions& options) {
  if (options.svg)
    CANDOR_TRY(write_picture_file(*options.svg, stack(generate_heading(report), generate_pictures(report)).document()));
  if (options.html) CANDOR_TRY(write_picture_file(*options.html, to_html(generate_page(report))));
  return {};
}

int bench_generate(const BenchOptions& options) {
  auto choice = choose_model(options.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("bench generate takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  for (const auto& path : {options.svg, options.html}) {
    const auto can_write = check_writable(path);
    if (!can_write) return say_error(can_write.error().message), kUserInput;
  }
  const int64_t shortest = *std::ranges::min_element(options.prompts);
  if (options.n_shared.value_or(0) >= shortest) {
    return say_error(fmt::format("--shared {}: a prompt of {} tokens keeps none of its own; {} at most",
                                 *options.n_shared, shortest, shortest - 1)),
           kUserInput;
  }
  const std::vector<GenerateCase> cases = cases_of(options);
  EngineOptions engine;
  engine.model_path = choice->model;
  engine.fast_weights = options.fast_weights;
  engine.backend = engine::settled_device(options.backend);
  engine.n_threads = static_cast<int32_t>(options.n_threads.value_or(0));
  apply_ranks(options.n_ranks, engine);
  auto bench = GenerateBench::open(engine, cases);
  if (!bench) return say_error(bench.error().message), exit_code(bench.error());
  const auto measured_limits = limits_of((*bench)->backend_info());
  if (!measured_limits) return say_error(measured_limits.error().message), kUserInput;
  const kernels::MachineLimits& limits = *measured_limits;
  nlohmann::ordered_json report = {{"model", choice->model.string()},
                                   {"backend", (*bench)->backend_info().description},
                                   {"fast_weights", options.fast_weights},
                                   {"arithmetic", name_of((*bench)->model().cost().arithmetic)},
                                   {"limits", limits_json(limits, (*bench)->backend_info().n_threads)},
                                   {"results", nlohmann::ordered_json::array()}};
  if (!options.json) write_out(generate_heading(report) + "\n" + generate_table_head(report));
  const auto warm = warm_up(**bench, cases.front());
  if (!warm) return say_error(warm.error().message), exit_code(warm.error());
  for (const GenerateCase& run_case : cases) {
    if (interrupted()) return kInterrupted;
    auto measured = measure(**bench, run_case, options.repetitions.value_or(5));
    if (!measured) return say_error(measured.error().message), exit_code(measured.error());
    report["results"].push_back(generate_row(*measured, (*bench)->model(), limits));
    const auto& result = report["results"].back();
    if (!options.json && !write_out(generate_table_row(result) + ranks_row(result, (*bench)->model()))) return kDone;
  }
  if (options.json) write_out(report.dump(2) + "\n");
  const auto written = write_report(report, options);
  return written ? kDone : (say_error(written.error().message), kUserInput);
}

void add_bench_generate(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("generate", "prefill and decode over lengths and batches");
  const auto options = std::make_shared<BenchOptions>();
  constexpr int64_t kMax = 1 << 20;
  command->add_option("model", options->positionals, "[MODEL]");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command->add_option("--prompt", options->prompts, "tokens of the prompt, several by commas (512)")
      ->type_name("N,..")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, kMax));
  command->add_option("--batch", options->batches, "sequences together, several by commas (1)")
      ->type_name("N,..")
      ->delimiter(',')
      ->check(CLI::Range(int64_t{1}, int64_t{4096}));
  add_int(*command, "--shared", options->n_shared, 0, kMax,
          "tokens that all prompts begin with, read and kept once (0)");
  add_int(*command, "--new", options->n_new, 1, kMax, "tokens decoded (32)");
  add_int(*command, "-t,--threads", options->n_threads, 1, 1024, "threads (see candor doctor)");
  add_ranks(*command, options->n_ranks);
  add_int(*command, "-r,--repetitions", options->repetitions, 1, 1000, "the median of so many is shown (5)");
  add_device(*command, options->backend);
  add_fast_weights(*command, options->fast_weights);
  command->add_flag("--no-kv-cache", options->no_kv_cache, "and each case without it, all computed anew at each token");
  command->add_option("--svg", options->svg, "prefill, decode and latency as pictures, written there")
      ->type_name("FILE");
  command->add_option("--html", options->html, "the whole report as one page, written there")->type_name("FILE");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &action] { action = [options] { return bench_generate(*options); }; });
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "the machine's limits, and prefill and decode beside them");
  command->require_subcommand(1);
  const auto json = std::make_shared<bool>(false);
  CLI::App* limits = command->add_subcommand("limits", "DRAM, L2, int8 and f32, measured");
  limits->add_flag("--json", *json, "as JSON");
  limits->callback([json, &action] { action = [json] { return bench_limits(*json); }; });
  add_bench_generate(*command, action);
  add_bench_serve(*command, action);
  add_bench_drafts(*command, action);
}

}  // namespace candor::apps
