#pragma once
// The sampler alone, on numbers that somebody typed: the stages of one choice, the distribution that all choices are
// drawn from, and how often each token came in so many draws.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "candor/event.h"
#include "candor/request.h"

namespace candor::apps {

struct BareChoice {
  std::vector<float> logits{};
  SamplingParams sampling{};     // seed is set; of the lists only logit_bias by id, and samplers
  std::vector<TokenId> text{};   // what was written so far, all of it by the model: for penalties and DRY
  int64_t n_draws = 0;
  size_t n_shown = 8;  // candidates of a stage
};

struct BareOutcome {
  TokenExplanation explanation{};
  TokenId token = -1;
  std::vector<double> probabilities{};  // [V]; where XTC happens now and then, of both cases together
  std::vector<int64_t> counts{};        // [V], of the draws
  int64_t n_drawn = 0;                  // fewer than wanted where somebody interrupted
};

// REQUIRES: every id is below the number of logits. Draw i is that of position i of the seed.
Result<BareOutcome> sample_alone(const BareChoice& choice);

}  // namespace candor::apps
