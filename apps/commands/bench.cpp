// candor bench: the machine's limits, and prefill and decode beside them.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/generate.h"
#include "apps/bench/line_chart.h"
#include "apps/bench/machine_limits.h"
#include "apps/commands/bench_commands.h"
#include "apps/commands/commands.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "kernels/kernels.h"
#include "platform/topology.h"

namespace candor::apps {
namespace {

int bench_limits(bool json) {
  const auto table = kernels::select_table_from_environment();
  if (!table) return say_error(table.error().message), kUserInput;
  const int32_t n_threads = platform::advise_threads(platform::read_topology()).n_threads;
  nlohmann::ordered_json report = nlohmann::ordered_json::array();
  std::string text = fmt::format("{}\n{:>8} {:>14} {:>14} {:>14} {:>14}\n", (*table)->description, "threads",
                                 "DRAM read", "L2 read", "int8", "f32");
  for (int32_t n = 1; n <= n_threads; n = n == n_threads ? n + 1 : std::min(n * 2, n_threads)) {
    const auto measured = measure_limits(n);
    if (!measured) return say_error(measured.error().message), kUserInput;
    const kernels::MachineLimits& limits = *measured;
    report.push_back(limits_json(limits, n));
    text += fmt::format("{:>8} {:>9.1f} GB/s {:>9.1f} GB/s {:>8.2f} TOP/s {:>6.2f} TFLOP/s\n", n,
                        limits.dram_read_bytes / 1e9, limits.l2_read_bytes / 1e9, limits.int8_ops / 1e12,
                        limits.f32_flops / 1e12);
  }
  write_out(json ? report.dump(2) + "\n" : text);
  return kDone;
}

struct BenchOptions {
  std::optional<std::string> model;
  std::vector<std::string> positionals;
  std::vector<int64_t> prompts = {512}, batches = {1};
  std::optional<int64_t> n_new, n_threads, repetitions;
  std::optional<std::string> svg;
  std::string backend = "cpu";
  bool no_kv_cache = false, fast_weights = false, json = false;
};

struct Measured {
  GenerateCase run_case;
  std::vector<double> prefill, decode;  // tokens a second, one for each repetition, ascending
};

double median(const std::vector<double>& ascending) {
  return ascending[ascending.size() / 2];
}

nlohmann::ordered_json to_json(const Measured& m, const model::Model& model, const kernels::MachineLimits& limits) {
  const double prefill = median(m.prefill), decode = median(m.decode);
  const double steps_per_s = decode / m.run_case.n_batch;
  return {{"prompt", m.run_case.n_prompt},
          {"new", m.run_case.n_new},
          {"batch", m.run_case.n_batch},
          {"kv_cache", m.run_case.use_kv_cache},
          {"prefill_tokens_per_second", prefill},
          {"prefill_range", {m.prefill.front(), m.prefill.back()}},
          {"prefill_ms", 1e3 * m.run_case.n_prompt * m.run_case.n_batch / prefill},
          {"prefill_int8_share", 2.0 * static_cast<double>(model.n_parameters()) * prefill / limits.int8_ops},
          {"decode_tokens_per_second", decode},
          {"decode_range", {m.decode.front(), m.decode.back()}},
          {"decode_step_ms", 1e3 / steps_per_s},
          {"decode_dram_share", static_cast<double>(model.weight_bytes()) * steps_per_s / limits.dram_read_bytes}};
}

std::string table_row(const nlohmann::ordered_json& r) {
  return fmt::format("{:>7} {:>5} {:>6} {:>12.1f} {:>10.1f} {:>9.0f} % {:>12.1f} {:>10.2f} {:>9.0f} %\n",
                     r["prompt"].get<int>(), r["new"].get<int>(), r["batch"].get<int>(),
                     r["prefill_tokens_per_second"].get<double>(), r["prefill_ms"].get<double>(),
                     100 * r["prefill_int8_share"].get<double>(), r["decode_tokens_per_second"].get<double>(),
                     r["decode_step_ms"].get<double>(), 100 * r["decode_dram_share"].get<double>());
}

std::vector<GenerateCase> cases_of(const BenchOptions& options) {
  std::vector<GenerateCase> cases;
  for (const int64_t prompt : options.prompts)
    for (const int64_t batch : options.batches)
      cases.push_back({static_cast<int32_t>(prompt), static_cast<int32_t>(options.n_new.value_or(32)),
                       static_cast<int32_t>(batch), !options.no_kv_cache});
  return cases;
}

// A column of the results over prompt lengths (a line for each batch), or over batches where there is one length.
LineChart chart_of(const nlohmann::ordered_json& results, const BenchOptions& options, const std::string& title,
                   const char* column, const char* share) {
  const bool over_prompts = options.prompts.size() > 1;
  const char* line_key = over_prompts ? "batch" : "prompt";
  LineChart chart{title, over_prompts ? "tokens of the prompt" : "sequences together", {}, {}};
  for (const int64_t x : over_prompts ? options.prompts : options.batches)
    chart.categories.push_back(fmt::format("{}", x));
  for (const int64_t line : over_prompts ? options.batches : options.prompts) {
    ChartLine measured{fmt::format("{} {}", line_key, line), {}}, limit{measured.name + ", limit", {}, true};
    for (const auto& result : results) {
      if (result[line_key] != line) continue;
      measured.values.push_back(result[column]);
      limit.values.push_back(result[column].get<double>() / result[share].get<double>());
    }
    chart.lines.push_back(std::move(measured));
    chart.lines.push_back(std::move(limit));
  }
  return chart;
}

Result<void> write_svg(const nlohmann::ordered_json& report, const BenchOptions& options) {
  const auto& results = report["results"];
  const std::string heading =
      fmt::format("{}, {}", std::filesystem::path(report["model"].get<std::string>()).filename().string(),
                  report["backend"].get<std::string>());
  std::ofstream file(*options.svg);
  file << to_svg(heading, {chart_of(results, options, "prefill, tokens/s (limit: int8 arithmetic)",
                                    "prefill_tokens_per_second", "prefill_int8_share"),
                           chart_of(results, options, "decode, tokens/s (limit: one read of the weights a step)",
                                    "decode_tokens_per_second", "decode_dram_share")});
  file.close();
  if (file) return {};
  return fail(ErrorKind::kIo, fmt::format("can't write {}: is the folder there, and writable?", *options.svg));
}

Result<Measured> measure(GenerateBench& bench, const GenerateCase& run_case, int64_t repetitions) {
  Measured measured{run_case, {}, {}};
  for (int64_t i = -1; i < repetitions; ++i) {
    CANDOR_ASSIGN(const GenerateTimes times, bench.run(run_case));
    if (i < 0) continue;  // warm-up
    measured.prefill.push_back(run_case.n_batch * run_case.n_prompt / times.prefill_s);
    measured.decode.push_back(run_case.n_batch * run_case.n_new / times.decode_s);
  }
  std::ranges::sort(measured.prefill);
  std::ranges::sort(measured.decode);
  return measured;
}

int bench_generate(const BenchOptions& options) {
  auto choice = choose_model(options.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("bench generate takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  const std::vector<GenerateCase> cases = cases_of(options);
  auto bench = GenerateBench::open({.model_path = choice->model,
                                    .fast_weights = options.fast_weights,
                                    .backend = options.backend,
                                    .n_threads = static_cast<int32_t>(options.n_threads.value_or(0))},
                                   cases);
  if (!bench) return say_error(bench.error().message), kUserInput;
  const auto measured_limits = measure_limits((*bench)->backend_info().n_threads);
  if (!measured_limits) return say_error(measured_limits.error().message), kUserInput;
  const kernels::MachineLimits& limits = *measured_limits;
  nlohmann::ordered_json report = {{"model", choice->model.string()},
                                   {"backend", (*bench)->backend_info().description},
                                   {"fast_weights", options.fast_weights},
                                   {"limits", limits_json(limits, (*bench)->backend_info().n_threads)},
                                   {"results", nlohmann::ordered_json::array()}};
  if (!options.json) {
    write_out(fmt::format("{}, {}\n{:>7} {:>5} {:>6} {:>12} {:>10} {:>11} {:>12} {:>10} {:>11}\n",
                          choice->model.filename().string(), (*bench)->backend_info().description, "prompt", "new",
                          "batch", "prefill t/s", "ms", "of int8", "decode t/s", "ms/step", "of DRAM"));
  }
  for (const GenerateCase& run_case : cases) {
    auto measured = measure(**bench, run_case, options.repetitions.value_or(5));
    if (!measured) return say_error(measured.error().message), kUserInput;
    report["results"].push_back(to_json(*measured, (*bench)->model(), limits));
    if (!options.json && !write_out(table_row(report["results"].back()))) return kDone;
  }
  if (options.json) write_out(report.dump(2) + "\n");
  if (!options.svg) return kDone;
  const auto written = write_svg(report, options);
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
  add_int(*command, "--new", options->n_new, 1, kMax, "tokens decoded (32)");
  add_int(*command, "-t,--threads", options->n_threads, 1, 1024, "threads (see candor doctor)");
  add_int(*command, "-r,--repetitions", options->repetitions, 1, 1000, "the median of so many is shown (5)");
  add_choice(*command, "--backend", options->backend, {"cpu", "reference"}, "what computes");
  add_fast_weights(*command, options->fast_weights);
  command->add_flag("--no-kv-cache", options->no_kv_cache, "compute everything anew at each token");
  command->add_option("--svg", options->svg, "a plot, written there")->type_name("FILE");
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
}

}  // namespace candor::apps
