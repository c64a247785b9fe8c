#pragma once
// Requests of many kinds, and their receipts.

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "candor/receipt.h"
#include "support/shared_data.h"

namespace candor::testing::receipts {

struct ModelCase {
  std::string name;
  std::filesystem::path path;
  std::vector<std::string> adapters{};
  bool has_words = false;  // constraints and stop strings say something
  int n_requests = 0;
};

inline std::filesystem::path golden_model(const std::string& name) {
  return goldens() / name;
}

// Dense, with windows, recurrent, with experts, with latent attention, with adapters.
inline const std::vector<ModelCase>& model_cases() {
  static const std::vector<ModelCase> cases = {
      {.name = "pocket", .path = project_file("models/pocket/pocket-q8_0.gguf"), .has_words = true, .n_requests = 1200},
      {.name = "llama", .path = golden_model("llama"), .adapters = {"llama_all", "llama_dora"}, .n_requests = 200},
      {.name = "gemma3", .path = golden_model("gemma3"), .n_requests = 150},
      {.name = "qwen3_next", .path = golden_model("qwen3_next"), .n_requests = 150},
      {.name = "nemotron_h", .path = golden_model("nemotron_h"), .n_requests = 150},
      {.name = "gpt_oss", .path = golden_model("gpt_oss"), .n_requests = 150},
      {.name = "deepseek_v3", .path = golden_model("deepseek_v3"), .n_requests = 150}};
  return cases;
}

inline EngineOptions options_of(const ModelCase& of) {
  EngineOptions options;
  options.model_path = of.path;
  options.n_threads = 2;
  options.n_ctx = 96;
  options.max_running = 16;
  for (const std::string& name : of.adapters)
    options.adapters.push_back({name, project_file("tests/adapters/goldens/" + name), 0.5});
  return options;
}

inline std::unique_ptr<Engine> opened(Result<std::unique_ptr<Engine>> engine) {
  if (engine) return std::move(*engine);
  ADD_FAILURE() << engine.error().message;
  return nullptr;
}

inline void add_sampling(std::mt19937& random, int kind, SamplingParams& sampling) {
  sampling.temperature = kind % 4 == 0 ? 0.0 : 0.5 + 0.1 * (random() % 12);
  if (kind % 3 == 0) sampling.top_k = 1 + random() % 40;
  if (kind % 5 == 0) sampling.top_p = 0.5 + 0.05 * (random() % 10);
  if (kind % 7 == 0) sampling.min_p = 0.02;
  if (kind % 8 == 1) sampling.typical_p = 0.9;
  if (kind % 9 == 1) sampling.xtc_probability = 0.5, sampling.xtc_threshold = 0.05;
  if (kind % 6 == 0) sampling.repetition_penalty = 1.2, sampling.repeat_last_n = 20;
  if (kind % 6 == 1) sampling.frequency_penalty = 0.3, sampling.presence_penalty = 0.2;
  if (kind % 10 == 2) sampling.dry_multiplier = 0.8;
  if (kind % 11 == 2) sampling.no_repeat_ngram_size = 3;
  if (kind % 12 == 2) sampling.logit_bias = {{.token = 40, .bias = 2.5}, {.token = 41, .ban = true}};
  if (kind % 13 == 3) sampling.dynatemp_range = 0.3;
  if (kind % 10 == 3) sampling.stop_ids = {44, 46};
  if (kind % 14 == 3) sampling.min_tokens = 3;
  if (kind % 9 == 4) sampling.logprobs_after_chain = true;
  if (kind % 2 == 0) sampling.logprobs = 3;
}

inline Request made_request(const ModelCase& of, std::mt19937& random, int i) {
  Request request;
  TokenPrompt prompt;
  const auto length = 2 + random() % 40;
  for (TokenId at = 0; at < static_cast<TokenId>(length); ++at)
    prompt.push_back((5 * at * at + 3 * at + i % 7 + 1) % 250);
  if (of.has_words && i % 2 == 0)
    request.prompt = TextPrompt{.text = "Once upon a time there was a " + std::to_string(i)};
  else
    request.prompt = prompt;
  add_sampling(random, static_cast<int>(random() % 1000), request.sampling);
  request.sampling.seed = (uint64_t{random()} << 32) | random();
  request.sampling.max_tokens = 4 + random() % 30;
  request.sampling.ignore_eos = i % 3 == 0;
  request.receipt = true;
  if (i % 10 == 1) request.n = 3;
  if (i % 25 == 2) request.beams = BeamSearch{.width = 3, .length_penalty = 0.8, .early_stopping = i % 2 == 0};
  if (i % 25 == 2) request.n = 2;
  if (i % 12 == 3) request.sampling.max_tokens.reset();
  if (i % 120 == 3) {
    request.on_context_full = OnContextFull::kCrop;
    request.sampling.max_tokens = 110;
  }
  if (of.has_words && i % 9 == 4) request.sampling.stop = {"the", ". "};
  if (of.has_words && i % 40 == 5)
    request.constraint = ConstraintSpec{.kind = GrammarKind::kRegex, .source = "[A-Z][a-z ]{3,20}\\."};
  if (of.has_words && i % 40 == 25)
    request.constraint = ConstraintSpec{.kind = GrammarKind::kChoice, .source = R"(["yes", "no", "a cat"])"};
  if (!of.adapters.empty() && i % 2 == 0) request.adapters.push_back({of.adapters[i % of.adapters.size()], 0.7});
  if (!of.adapters.empty() && i % 6 == 0) request.adapters = {{of.adapters[0], 1.0}, {of.adapters[1], -0.4}};
  return request;
}

inline std::vector<Request> made_requests(const ModelCase& of) {
  std::mt19937 random(17);
  std::vector<Request> requests;
  for (int i = 0; i < of.n_requests; ++i) requests.push_back(made_request(of, random, i));
  return requests;
}

// Eight at a time.
inline std::vector<Receipt> receipts_of(Engine& engine, const std::vector<Request>& requests) {
  std::vector<Receipt> receipts(requests.size());
  for (size_t begin = 0; begin < requests.size(); begin += 8) {
    const size_t end = std::min(requests.size(), begin + 8);
    std::vector<std::promise<void>> ends(end - begin);
    for (size_t i = begin; i < end; ++i) {
      const auto id = engine.submit(requests[i], [&, i](const TokenEvent& event) {
        if (event.error) ADD_FAILURE() << "request " << i << ": " << event.error->message;
        if (!event.summary) return;
        if (event.summary->receipt) receipts[i] = *event.summary->receipt;
        ends[i - begin].set_value();
      });
      if (id) continue;
      ADD_FAILURE() << "request " << i << ": " << id.error().message;
      ends[i - begin].set_value();
    }
    for (auto& each : ends) each.get_future().get();
  }
  return receipts;
}

}  // namespace candor::testing::receipts
