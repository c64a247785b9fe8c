// What speculation gains: decoding with and without drafts, in turns in one engine, as a ratio of times.
//
//   candor_bench_speculate MODEL             n-gram drafts on scripted outputs: those that repeat their prompt, those
//                                            that repeat nothing, and those that begin to repeat and then do not
//   candor_bench_speculate MODEL DRAFT|ngram|mtp [THREADS [only]]
//                                            10 prompts in the model's own words, greedy and at temperature 0.8: drafts
//                                            of a draft model or head, of n-grams, of the model's own head; n-grams
//                                            beside a model or head unless it is to draft alone
//
// A scripted output comes from a backend that computes everything and then lifts one token's logit: so random weights
// can be measured on a text of our choice, at full cost.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "backend/wrap/forwarding_backend.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"

namespace candor {
namespace {

using Json = nlohmann::ordered_json;
using Script = std::vector<TokenId>;
constexpr int64_t kNewTokens = 128;
constexpr int kPromptTokens = 192;
constexpr float kLift = 40.0f;
constexpr int kRounds = 21;
constexpr int kScriptRounds = 3;
constexpr int64_t kTokensOfRound = 400;
constexpr size_t kMostAnswers = 40;

class ScriptedBackend final : public backend::ForwardingBackend {
 public:
  ScriptedBackend(std::unique_ptr<backend::Backend> inner, const Script& script)
      : ForwardingBackend(std::move(inner)), script_(script) {}

  void begin_step(const backend::StepBatch& batch, backend::KvStore& kv) override {
    positions_.clear();
    for (const int32_t row : batch.out_rows) positions_.push_back(batch.positions[static_cast<size_t>(row)]);
    ForwardingBackend::begin_step(batch, kv);
  }
  backend::LogitsView read_logits(backend::StepTicket ticket) override {
    const backend::LogitsView view = ForwardingBackend::read_logits(ticket);
    if (script_.empty() || positions_.empty()) return view;
    const size_t width = static_cast<size_t>(view.n_vocab);
    logits_.assign(view.data, view.data + width * static_cast<size_t>(view.n_rows));
    for (size_t row = 0; row < positions_.size(); ++row) {
      const size_t next = static_cast<size_t>(positions_[row]) + 1;
      if (next < script_.size()) logits_[row * width + static_cast<size_t>(script_[next])] += kLift;
    }
    return {logits_.data(), view.n_rows, view.n_vocab};
  }

 private:
  const Script& script_;
  std::vector<int32_t> positions_;
  std::vector<float> logits_;
};

struct Timed {
  double decode_ms = 0;
  Usage usage{};
};

Timed decode(Engine& engine, Request request, bool speculate) {
  request.sampling.speculate = speculate;
  const auto completion = engine.generate(request);
  if (!completion) {
    std::cerr << completion.error().message << "\n";
    std::exit(2);
  }
  return {completion->summary.timings.decode_ms, completion->summary.usage};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

Json drafts_json(const DraftUsages& drafts) {
  Json json = Json::object();
  for (size_t i = 0; i < kDraftSources; ++i) {
    const DraftUsage& of_one = drafts[i];
    if (of_one.n_steps == 0) continue;
    json[to_string(static_cast<DraftSource>(i))] = {{"steps", of_one.n_steps},
                                                    {"drafts", of_one.drafted_tokens},
                                                    {"right", of_one.accepted_tokens},
                                                    {"gain", of_one.gain()}};
  }
  return json;
}

// Every request is decoded both ways again and again, its two runs side by side and in turns the one or the other
// first; the ratio is that of the medians, summed over the requests. The median of each pair's own ratio says the same
// where the machine's speed drifts from pair to pair.
Json compare(Engine& engine, const std::vector<Request>& requests, int n_rounds) {
  double sums[2] = {0, 0};
  std::vector<double> pairs;
  Usage usage;
  for (const Request& request : requests) {
    std::vector<double> ms[2];
    Usage of_request;
    for (int run = 0; run < 2 * n_rounds; ++run) {
      const bool speculate = (run + run / 2) % 2 == 1;
      const Timed timed = decode(engine, request, speculate);
      ms[speculate].push_back(timed.decode_ms);
      if (speculate) of_request = timed.usage;
    }
    for (const bool speculate : {false, true}) sums[speculate] += median(ms[speculate]);
    for (size_t i = 0; i < ms[0].size(); ++i) pairs.push_back(ms[0][i] / ms[1][i]);
    usage.completion_tokens += of_request.completion_tokens;
    usage.drafted_tokens += of_request.drafted_tokens;
    usage.accepted_tokens += of_request.accepted_tokens;
    for (size_t i = 0; i < kDraftSources; ++i) usage.drafts[i] += of_request.drafts[i];
  }
  return {{"tokens", usage.completion_tokens}, {"plain_ms", sums[0]},
          {"speculated_ms", sums[1]},          {"ratio", sums[0] / sums[1]},
          {"pairs_ratio", median(pairs)},      {"drafts", usage.drafted_tokens},
          {"right", usage.accepted_tokens},    {"by", drafts_json(usage.drafts)}};
}

// Medians of what steps with so many drafts took, to hold against the costs that drafts are made by.
class StepTimes {
 public:
  explicit StepTimes(Engine& engine) {
    engine.on_step([this](const StepReport& report) {
      if (report.n_rows == 1 + report.n_draft_rows) times_[report.n_draft_rows].push_back(report);
    });
  }
  Json report() const {
    Json rows = Json::array();
    for (const auto& [n_drafts, reports] : times_) {
      const auto of = [&reports = reports](double StepReport::*ms) {
        std::vector<double> values;
        for (const StepReport& report : reports) values.push_back(report.*ms);
        return median(values);
      };
      rows.push_back({{"drafts", n_drafts},
                      {"steps", reports.size()},
                      {"plan_ms", of(&StepReport::plan_ms)},
                      {"compute_ms", of(&StepReport::compute_ms)},
                      {"pick_ms", of(&StepReport::pick_ms)}});
    }
    return rows;
  }

 private:
  std::map<int32_t, std::vector<StepReport>> times_;
};

Script random_script(size_t n, int32_t n_vocab, uint32_t seed) {
  std::mt19937 random(seed);
  Script script;
  while (script.size() < n) script.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(n_vocab)));
  return script;
}

// Pairs of the prompt come again, in another order: every pair is followed by something else than before.
Script misleading_script(size_t n, int32_t n_vocab) {
  Script script = random_script(kPromptTokens, n_vocab, 5);
  std::mt19937 random(6);
  while (script.size() < n) {
    const size_t at = random() % (kPromptTokens - 2);
    script.insert(script.end(), {script[at], script[at + 1]});
  }
  return script;
}

Json scripted(Engine& engine, Script& script) {
  const size_t n = kPromptTokens + static_cast<size_t>(kNewTokens) + 1;
  const int32_t n_vocab = engine.info().n_vocab;
  std::map<std::string, Script> scripts;
  scripts["repeats its prompt"] = random_script(kPromptTokens, n_vocab, 1);
  while (scripts["repeats its prompt"].size() < n) {
    const TokenId next = scripts["repeats its prompt"][scripts["repeats its prompt"].size() - kPromptTokens];
    scripts["repeats its prompt"].push_back(next);
  }
  scripts["repeats nothing"] = random_script(n, n_vocab, 2);
  scripts["misleads"] = misleading_script(n, n_vocab);
  Json results = Json::array();
  for (const auto& [name, tokens] : scripts) {
    for (const double temperature : {0.0, 0.8}) {
      script = tokens;
      Request request;
      request.prompt = TokenPrompt(tokens.begin(), tokens.begin() + kPromptTokens);
      request.sampling.temperature = temperature;
      request.sampling.seed = 7;
      request.sampling.max_tokens = kNewTokens;
      request.sampling.ignore_eos = true;
      Json result = compare(engine, {request}, kScriptRounds);
      result["output"] = name;
      result["temperature"] = temperature;
      results.push_back(std::move(result));
    }
  }
  return results;
}

constexpr const char* kPrompts[] = {"Tell me a story about a fox.",
                                    "What is 7 + 5?",
                                    "Who are you?",
                                    "Tell me a story about a brave mouse.",
                                    "What is the colour of the sky?",
                                    "Tell me a story about two friends.",
                                    "How are you?",
                                    "Tell me a story with a yellow hat.",
                                    "What is 14 - 6?",
                                    "Good night!"};

Request asking(const Engine& engine, const char* prompt, double temperature, uint64_t seed) {
  Request request;
  if (engine.info().has_chat_template) {
    request.prompt = ChatPrompt{{{"user", prompt}}};
  } else {
    request.prompt = TextPrompt{prompt};
  }
  request.sampling.temperature = temperature;
  request.sampling.seed = seed;
  request.sampling.max_tokens = 200;
  return request;
}

// As many answers to each as make some hundred tokens.
Json own_words(Engine& engine, double temperature) {
  Json results = Json::array();
  for (const char* prompt : kPrompts) {
    std::vector<Request> requests;
    int64_t n_tokens = 0;
    while (n_tokens < kTokensOfRound && requests.size() < kMostAnswers) {
      requests.push_back(asking(engine, prompt, temperature, 3 + requests.size()));
      n_tokens += decode(engine, requests.back(), true).usage.completion_tokens;
    }
    Json result = compare(engine, requests, kRounds);
    result["answers"] = requests.size();
    result["prompt"] = prompt;
    result["temperature"] = temperature;
    results.push_back(std::move(result));
  }
  return results;
}

int run(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: candor_bench_speculate MODEL [DRAFT|ngram|mtp [THREADS [only]]]\n", 2;
  const bool is_scripted = argc == 2;
  EngineOptions options;
  options.model_path = argv[1];
  options.n_ctx = 512;
  options.max_running = 1;
  options.speculation = Speculation::kNgram;
  const std::string_view way = is_scripted ? "ngram" : argv[2];
  if (way == "mtp") {
    options.speculation = Speculation::kAuto;
  } else if (way != "ngram") {
    options.speculation = Speculation::kDraft;
    options.draft_path = argv[2];
  }
  if (argc > 3) options.n_threads = std::atoi(argv[3]);
  options.ngrams_beside = argc < 5;
  Script script;
  const auto make = [&](const EngineOptions& o) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, engine::make_named_backend(o));
    return std::make_unique<ScriptedBackend>(std::move(inner), script);
  };
  const auto engine = engine::open_with_backend(options, make);
  if (!engine) return std::cerr << engine.error().message << "\n", 2;
  const ModelInfo& info = (*engine)->info();
  Json costs = Json::array();
  for (const StepCosts::Point& point : info.costs.points) costs.push_back({{"rows", point.n_rows}, {"ms", point.ms}});
  const StepTimes times(**engine);
  Json results = is_scripted ? scripted(**engine, script) : own_words(**engine, 0.0);
  if (!is_scripted) {
    for (Json& result : own_words(**engine, 0.8)) results.push_back(std::move(result));
  }
  const Json report = {{"model", info.paths.front().filename().string()},
                       {"backend", info.backend_description},
                       {"draft", info.draft_path.filename().string()},
                       {"step_costs", costs},
                       {"out_row_ms", info.costs.out_row_ms},
                       {"draft_ms", info.costs.draft_ms},
                       {"draft_read_ms", info.costs.draft_read_ms},
                       {"steps", times.report()},
                       {"results", std::move(results)}};
  std::cout << report.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace candor

int main(int argc, char** argv) {
  return candor::run(argc, argv);
}
