// candor bench drafts: what drafts gain, by the costs of this model on this machine.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/bench/draft_gains.h"
#include "apps/commands/bench_commands.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/model_choice.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "candor/drafts.h"
#include "candor/engine.h"

namespace candor::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kAcceptances[] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
constexpr int32_t kTogether[] = {1, 4, 16};
constexpr int32_t kContexts[] = {128, 4096, 32768};

struct DraftsOptions {
  GenerationOptions generation{};
  std::vector<std::string> positionals{};
  bool json = false;
};

std::string drafter_of(const ModelInfo& info) {
  if (!info.draft_path.empty()) return info.draft_path.filename().string();
  if (std::ranges::find(info.drafters, DraftSource::kMtp) != info.drafters.end()) return "the model's own head";
  return info.drafters.empty() ? "" : "n-grams of the text, which cost nothing";
}

Json costs_json(const StepCosts& costs) {
  Json points = Json::array();
  for (const StepCosts::Point& point : costs.points) points.push_back({{"rows", point.n_rows}, {"ms", point.ms}});
  return {{"steps", points}, {"draft_ms", costs.draft_ms}, {"draft_read_ms", costs.draft_read_ms}};
}

Json gains_of(const ModelInfo& info) {
  Json rows = Json::array();
  for (const int32_t n_together : kTogether) {
    for (const int32_t n_past : kContexts) {
      if (n_past >= info.n_ctx) continue;
      Json row = {{"together", n_together}, {"context", n_past}, {"gains", Json::array()}};
      for (const double acceptance : kAcceptances) {
        const DraftGain gain = best_gain(info.costs, {n_together, n_past, acceptance});
        row["gains"].push_back({{"accepted", acceptance}, {"drafts", gain.n_drafts}, {"ratio", gain.ratio}});
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string table_of(const Json& report) {
  std::string text = fmt::format("{}, {}; drafts of {}\n", report["model"].get<std::string>(),
                                 report["backend"].get<std::string>(), report["draft"].get<std::string>());
  const Json& costs = report["costs"];
  text += fmt::format("a step of one row takes {:.3f} ms, a draft {:.3f} ms\n\n", costs["steps"][0]["ms"].get<double>(),
                      costs["draft_ms"].get<double>());
  text += "times as fast as without drafts, and with how many of each sequence\n\n";
  text += fmt::format("{:>8} {:>8} {:>9}", "together", "context", "accepted:");
  for (const double acceptance : kAcceptances) text += fmt::format("{:>11}", fmt::format("{:.0f} %", acceptance * 100));
  for (const Json& row : report["gains"]) {
    text += fmt::format("\n{:>8} {:>8} {:>9}", row["together"].get<int32_t>(), row["context"].get<int32_t>(), "");
    for (const Json& gain : row["gains"]) {
      const auto n = gain["drafts"].get<int32_t>();
      text += fmt::format("{:>11}", n == 0 ? "-" : fmt::format("{:.2f} by {:>2}", gain["ratio"].get<double>(), n));
    }
  }
  return text + "\n";
}

int bench_drafts(const DraftsOptions& options) {
  auto choice = choose_model(options.generation.model, options.positionals);
  if (!choice) return say_error(choice.error().message), kUserInput;
  if (!choice->texts.empty())
    return say_error(fmt::format("bench drafts takes one model; what is \"{}\"?", choice->texts[0])), kUserInput;
  EngineOptions opened = engine_options(options.generation, choice->model);
  opened.max_running = kTogether[std::size(kTogether) - 1];
  const auto engine = Engine::open(opened);
  if (!engine) return say_error(engine.error().message), exit_code(engine.error());
  const ModelInfo& info = (*engine)->info();
  const std::string drafter = drafter_of(info);
  if (drafter.empty()) {
    return say_error(
               "nothing drafts for this model: it has no head for multi-token prediction; name a smaller model "
               "or a head with --draft, or ask for n-grams with --speculate ngram"),
           kUserInput;
  }
  const Json report = {{"model", info.paths.front().filename().string()},
                       {"backend", info.backend_description},
                       {"draft", drafter},
                       {"costs", costs_json(info.costs)},
                       {"gains", gains_of(info)}};
  write_out(options.json ? report.dump(2) + "\n" : table_of(report));
  return kDone;
}

}  // namespace

void add_bench_drafts(CLI::App& bench, Action& action) {
  CLI::App* command = bench.add_subcommand("drafts", "what drafts gain, by how many are accepted");
  const auto options = std::make_shared<DraftsOptions>();
  command->add_option("model", options->positionals, "[MODEL]");
  GenerationOptions& generation = options->generation;
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  command->add_option("-m,--model", generation.model, "the model's file")->type_name("FILE");
  add_int(*command, "-c,--ctx-size", generation.n_ctx, 1, kMax, "context in tokens (the model's own)");
  add_int(*command, "-t,--threads", generation.n_threads, 1, 1024, "threads (see candor doctor)");
  add_ranks(*command, generation.n_ranks);
  add_speculation_options(*command, generation);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &action] { action = [options] { return bench_drafts(*options); }; });
}

}  // namespace candor::apps
