// candor eval: perplexity of a text, and how far a model file or backend is from another.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/bench/bare_model.h"
#include "apps/bench/text_windows.h"
#include "apps/commands/commands.h"
#include "apps/options/adapter_options.h"
#include "apps/options/arguments.h"
#include "apps/options/generation_options.h"
#include "apps/options/prompt_source.h"
#include "apps/options/window_options.h"
#include "apps/terminal/exit_codes.h"
#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "candor/options.h"
#include "engine/open/adapter_loading.h"
#include "engine/open/device_choice.h"
#include "engine/open/mpi_ranks.h"
#include "formats/model_file.h"
#include "model/model.h"
#include "model/score.h"

namespace candor::apps {
namespace {

struct EvalOptions {
  std::optional<std::string> model, against;
  PromptSource source;
  std::optional<int64_t> n_threads, n_ranks;
  WindowChoice window;
  std::string backend = "auto", against_backend, kv_type = "auto";
  std::vector<std::string> adapters;
  bool fast_weights = false, json = false;
};

struct Loaded : BareModel {
  std::unique_ptr<model::Scorer> scorer;
};

// The model, on what runs it; adapters are its own, not those of what it is compared with, unless that is another
// backend alone.
EngineOptions engine_of(const EvalOptions& options, const std::filesystem::path& path, const std::string& backend) {
  EngineOptions engine;
  engine.model_path = path;
  engine.backend = engine::settled_device(backend);
  engine.adapters = read_adapters(options.adapters);
  return engine;
}

// engine: the model, the backend and how its weights are read.
Result<Loaded> load(EngineOptions engine, const EvalOptions& options) {
  engine.n_threads = static_cast<int32_t>(options.n_threads.value_or(0));
  apply_ranks(options.n_ranks, engine);
  engine.max_running = 1;
  engine.n_ctx = options.window.n_tokens.value_or(0);
  CANDOR_ASSIGN(BareModel bare, load_bare_model(engine, kUsualWindow));
  Loaded loaded{std::move(bare), nullptr};
  const int32_t window = options.window.tokens_of(loaded.model->spec().max_positions);
  const KvType usual = model::usual_kv(loaded.model->spec(), loaded.backend->info().default_kv);
  const KvType kv_type = engine.kv_type.value_or(usual);
  model::ScorerOptions scoring{.max_tokens = window, .kv_type = kv_type};
  CANDOR_ASSIGN(const auto adapters, engine::load_adapters(engine, *loaded.file, *loaded.model));
  for (const engine::PlacedAdapter& each : adapters)
    scoring.uses.push_back({each.id, static_cast<float>(each.info.scale)});
  CANDOR_ASSIGN(loaded.scorer, model::Scorer::make(*loaded.model, *loaded.backend, scoring));
  return loaded;
}

struct Divergence {
  double kl_sum = 0;
  int64_t n = 0, n_decided = 0, n_same = 0;
};

void compare(std::span<const float> truth, std::span<const float> other, Divergence& sum) {
  constexpr float kGap = 0.1f;  // below it either choice is as good
  sum.kl_sum += model::kl_divergence(truth, other);
  ++sum.n;
  std::vector<float> top(truth.begin(), truth.end());
  std::ranges::nth_element(top, top.begin() + 1, std::greater<>());
  if (top[0] - top[1] <= kGap) return;
  ++sum.n_decided;
  const auto best = [](std::span<const float> row) { return std::ranges::max_element(row) - row.begin(); };
  if (best(truth) == best(other)) ++sum.n_same;
}

Result<Divergence> divergence(Loaded& truth, Loaded& other, const TextWindows& windows) {
  Divergence sum;
  if (truth.model->spec().vocab != other.model->spec().vocab)
    return fail(ErrorKind::kInvalidInput, fmt::format("the vocabularies differ: {} and {} tokens",
                                                      other.model->spec().vocab, truth.model->spec().vocab));
  for (const std::vector<TokenId>& window : windows.tokens) {
    std::vector<std::vector<float>> expected;
    CANDOR_TRY(truth.scorer->visit_logits(
        window, [&](size_t, std::span<const float> row) { expected.emplace_back(row.begin(), row.end()); }));
    CANDOR_TRY(other.scorer->visit_logits(
        window, [&](size_t i, std::span<const float> row) { compare(expected[i], row, sum); }));
  }
  return sum;
}

Result<std::vector<double>> logprobs_of(Loaded& model, const TextWindows& windows) {
  std::vector<double> logprobs;
  for (const auto& tokens : windows.tokens) {
    CANDOR_ASSIGN(const std::vector<double> one, model.scorer->logprobs(tokens));
    logprobs.insert(logprobs.end(), one.begin(), one.end());
  }
  return logprobs;
}

// With the weights that the file means, for what fast ones cost.
Result<double> exact_perplexity(const EvalOptions& options, const std::filesystem::path& path,
                                const TextWindows& windows) {
  CANDOR_ASSIGN(Loaded exact, load(engine_of(options, path, options.backend), options));
  CANDOR_ASSIGN(const std::vector<double> logprobs, logprobs_of(exact, windows));
  return model::perplexity(logprobs);
}

// Of each by itself, in order.
nlohmann::ordered_json documents_json(const TextWindows& windows, std::span<const double> logprobs) {
  std::vector<size_t> n_tokens(windows.n_documents, 0);
  for (size_t i = 0; i < windows.tokens.size(); ++i) n_tokens[windows.document[i]] += windows.tokens[i].size() - 1;
  auto list = nlohmann::ordered_json::array();
  size_t at = 0;
  for (const size_t n : n_tokens) {
    list.push_back({{"tokens", n}, {"perplexity", model::perplexity(logprobs.subspan(at, n))}});
    at += n;
  }
  return list;
}

Result<nlohmann::ordered_json> evaluate(const EvalOptions& options, const std::filesystem::path& path,
                                        const std::string& text) {
  EngineOptions engine = engine_of(options, path, options.backend);
  engine.fast_weights = options.fast_weights;
  engine.kv_type = find_kv_type(options.kv_type);
  CANDOR_ASSIGN(Loaded model, load(engine, options));
  const auto window = static_cast<size_t>(options.window.tokens_of(model.model->spec().max_positions));
  CANDOR_ASSIGN(const TextWindows windows,
                windows_of(*model.file, text, {window, options.window.split_at, options.window.parse_special}));
  CANDOR_ASSIGN(const std::vector<double> logprobs, logprobs_of(model, windows));
  nlohmann::ordered_json json = {{"model", path.string()},
                                 {"backend", options.backend},
                                 {"tokens", logprobs.size()},
                                 {"window", window},
                                 {"perplexity", model::perplexity(logprobs)}};
  if (options.window.split_at) json["documents"] = documents_json(windows, logprobs);
  if (options.fast_weights) {
    CANDOR_ASSIGN(json["exact_perplexity"], exact_perplexity(options, path, windows));
  }
  if (!options.against && options.against_backend.empty()) return json;
  const std::string against = options.against.value_or(path.string());
  const std::string backend = options.against_backend.empty() ? "reference" : options.against_backend;
  EngineOptions other = engine_of(options, against, backend);
  if (options.against) other.adapters.clear();
  CANDOR_ASSIGN(Loaded truth, load(other, options));
  CANDOR_ASSIGN(const Divergence sum, divergence(truth, model, windows));
  json["against"] = {{"model", against},
                     {"backend", backend},
                     {"mean_kl", sum.kl_sum / static_cast<double>(sum.n)},
                     {"same_top_share",
                      sum.n_decided == 0 ? 1.0 : static_cast<double>(sum.n_same) / static_cast<double>(sum.n_decided)},
                     {"decided_positions", sum.n_decided}};
  return json;
}

std::string text_of(const nlohmann::ordered_json& json) {
  std::string out =
      fmt::format("perplexity     {:.4f} over {} tokens in windows of {}\n", json["perplexity"].get<double>(),
                  json["tokens"].get<int64_t>(), json["window"].get<int64_t>());
  if (json.contains("documents")) {
    double least = 0, most = 0;
    for (const auto& one : json["documents"]) {
      const double perplexity = one["perplexity"].get<double>();
      least = least == 0 ? perplexity : std::min(least, perplexity);
      most = std::max(most, perplexity);
    }
    out +=
        fmt::format("documents      {} read one by one, of {:.4f} to {:.4f}\n", json["documents"].size(), least, most);
  }
  if (json.contains("exact_perplexity")) {
    const double exact = json["exact_perplexity"].get<double>();
    out += fmt::format("exact weights  {:.4f}: fast ones cost {:+.3f} %\n", exact,
                       100 * (json["perplexity"].get<double>() / exact - 1));
  }
  if (!json.contains("against")) return out;
  const auto& against = json["against"];
  return out + fmt::format(
                   "against        {} on {}\nmean KL        {:.3g} nats\nsame top token {:.2f} % of {} positions where "
                   "the gap exceeds 0.1\n",
                   against["model"].get<std::string>(), against["backend"].get<std::string>(),
                   against["mean_kl"].get<double>(), 100 * against["same_top_share"].get<double>(),
                   against["decided_positions"].get<int64_t>());
}

// The option that wants a second model beside the first; empty where none does.
std::string_view wants_second_model(const EvalOptions& options) {
  if (options.against) return "--against";
  if (!options.against_backend.empty()) return "--against-backend";
  return options.fast_weights ? "--fast-weights" : "";
}

int run(const EvalOptions& options) {
  if (const auto option = wants_second_model(options); !option.empty() && engine::joined_ranks())
    return say_error(fmt::format("{}: eval compares two models at once, and the ranks that mpirun started hold one; "
                                 "compare on one computer, with --ranks or without",
                                 option)),
           kUserInput;
  if (const auto good = check(options.window); !good) return say_error(good.error().message), kUserInput;
  const auto asked = read_model_and_prompt(options.model, options.source);
  if (!asked) return say_error(asked.error().message), kUserInput;
  auto json = evaluate(options, asked->model, asked->text);
  if (!json) return say_error(json.error().message), exit_code(json.error());
  write_out(options.json ? json->dump(2) + "\n" : text_of(*json));
  return kDone;
}

}  // namespace

void add_eval(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("eval", "perplexity, and divergence from another file or the reference");
  const auto options = std::make_shared<EvalOptions>();
  command->add_option("text", options->source.positionals, "[MODEL] TEXT");
  command->add_option("-m,--model", options->model, "the model's file")->type_name("FILE");
  command->add_option("-f,--file", options->source.file, "the text (- = standard input)")->type_name("FILE");
  command->add_option("--against", options->against, "a model file to compare with (the same)")->type_name("FILE");
  add_choice(*command, "--against-backend", options->against_backend, {"cpu", "cuda", "reference"},
             "what runs it (reference)");
  add_device(*command, options->backend);
  add_int(*command, "-t,--threads", options->n_threads, 1, 1024, "threads (see candor doctor)");
  add_window_options(*command, options->window);
  add_adapters(*command, options->adapters, "use a LoRA adapter (PEFT's folder, GGUF); may be repeated");
  add_ranks(*command, options->n_ranks);
  add_fast_weights(*command, options->fast_weights);
  add_kv_type(*command, options->kv_type);
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace candor::apps
