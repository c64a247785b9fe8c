#include "sample/sampler.h"

#include <algorithm>

#include "base/philox.h"
#include "sample/exact_log.h"

namespace candor::sample {
namespace {

float logprob_of(float logit, double log_total) {
  return std::max(static_cast<float>(static_cast<double>(logit) - log_total), kNoLogprob);
}

}  // namespace

// The logprobs of the raw logits; leaves them loaded.
Expected<void> Sampler::measure(const PickRequest& request, Pick& pick) {
  CANDOR_TRY(candidates_.load(request.logits, nullptr));
  const double total = static_cast<double>(candidates_.weigh()) * kWeightUnit;
  log_total_ = static_cast<double>(candidates_.max_logit()) + log_f64(total);
  const size_t n = std::min(static_cast<size_t>(request.n_logprobs), candidates_.size());
  for (size_t rank = 0; rank < n; ++rank) {
    const Candidate& candidate = candidates_.at(rank);
    pick.top.push_back({candidate.token, logprob_of(candidate.logit, log_total_)});
  }
  return {};
}

Expected<void> Sampler::pick(const PickRequest& request, Pick& pick) {
  pick.top.clear();
  const bool wants_logprobs = request.n_logprobs >= 0;
  if (wants_logprobs) CANDOR_TRY(measure(request, pick));
  if (!wants_logprobs || request.mask != nullptr) CANDOR_TRY(candidates_.load(request.logits, request.mask));
  if (request.chain.is_greedy()) {
    candidates_.keep_first(1);
    pick.token = candidates_.at(0).token;
  } else {
    run_chain(candidates_, request.chain);
    pick.token = draw(candidates_, random_words(request.key.seed, request.key.choice, request.key.position)[0]);
  }
  if (wants_logprobs) pick.logprob = logprob_of(request.logits[static_cast<size_t>(pick.token)], log_total_);
  return {};
}

}  // namespace candor::sample
