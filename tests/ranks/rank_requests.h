#pragma once
// What ranks are asked for in tests, and how a model is opened for it: the same alone, in one process and under mpirun.

#include <algorithm>
#include <filesystem>
#include <vector>

#include "engine_fixture.h"
#include "model/model.h"

namespace candor::testing {

inline EngineOptions rank_test_options(const std::filesystem::path& path) {
  EngineOptions options = options_for(path);
  const auto file = formats::open_model_file(path);
  const auto spec = file ? model::read_arch(**file) : Result<model::ArchSpec>(file.error());
  options.n_ctx = spec ? std::min(128, spec->max_positions) : 0;
  options.max_running = 5;
  options.max_rows = 48;
  options.costs = StepCosts{.points = {{1, 0.0}}, .attend_ns = 0};
  return options;
}

// Greedy and sampled, by beams, and under a constraint where the model has a text.
inline std::vector<Request> rank_test_requests(const ModelInfo& info) {
  constexpr int64_t kNewTokens = 6;
  const auto n_vocab = static_cast<int32_t>(info.n_vocab);
  const auto n_ctx = static_cast<int32_t>(info.n_ctx);
  std::vector<Request> requests;
  for (const int32_t n : {3, 33, std::min(70, n_ctx - 10)}) {
    requests.push_back(sampled(token_prompt(n, n_vocab, 7), kNewTokens, 1));
  }
  requests.push_back(sampled(token_prompt(20, n_vocab, 3), kNewTokens, 2));
  requests.back().sampling.temperature = 0.0;
  requests.push_back(sampled(token_prompt(9, n_vocab, 4), kNewTokens, 3));
  requests.back().beams = BeamSearch{.width = 2};
  if (n_vocab >= 300) {
    requests.push_back(sampled(token_prompt(9, n_vocab, 5), kNewTokens, 4));
    requests.back().constraint = {GrammarKind::kRegex, "[a-z ]{4,40}"};
  }
  for (Request& request : requests) request.sampling.ignore_eos = true;
  return requests;
}

}  // namespace candor::testing
