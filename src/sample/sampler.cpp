#include "sample/sampler.h"

#include <algorithm>
#include <string_view>

#include "base/philox.h"
#include "sample/bans.h"
#include "sample/exact_log.h"
#include "sample/row_passes.h"
#include "sample/row_plan.h"

namespace candor::sample {
namespace {

float to_logprob(float logit, double log_total) {
  return std::max(static_cast<float>(static_cast<double>(logit) - log_total), kNoLogprob);
}

void observe(const PickRequest& request, std::string_view stage, Candidates& candidates) {
  if (request.observer != nullptr) request.observer->on_stage(stage, candidates);
}

}  // namespace

float draw_of(const DrawKey& key) {
  return unit_float(random_words(key.seed, key.choice, key.position)[0]);
}

// The likeliest of the candidates as they are now.
void Sampler::measure(int32_t n_logprobs, Pick& pick) {
  const double total = static_cast<double>(candidates_.weigh()) * kWeightUnit;
  log_total_ = static_cast<double>(candidates_.max_logit()) + log_f64(total);
  const size_t n = candidates_.count_to(static_cast<size_t>(std::max(0, n_logprobs)));
  for (size_t rank = 0; rank < n; ++rank) {
    const Candidate candidate = candidates_.at(rank);
    pick.top.push_back({candidate.token, to_logprob(candidate.logit, log_total_)});
  }
}

Result<void> Sampler::edit(const PickRequest& request) {
  if (request.mask != nullptr) {
    candidates_.restrict(*request.mask);
    CANDOR_TRY(candidates_.settle());
    observe(request, "mask", candidates_);
  }
  if (request.chain.bans.is_on()) {
    apply_bans(candidates_, request.history, request.chain.bans);
    CANDOR_TRY(candidates_.settle());
    observe(request, "bans", candidates_);
  }
  const PhiloxWords words = random_words(request.key.seed, request.key.choice, request.key.position);
  const ChainInput input{request.chain, request.history, words[1], request.observer};
  return run_chain(candidates_, input, scratch_);
}

Result<void> Sampler::choose(const PickRequest& request, Pick& pick) {
  CANDOR_TRY(edit(request));
  const PhiloxWords words = random_words(request.key.seed, request.key.choice, request.key.position);
  if (request.chain.is_greedy()) candidates_.keep_first(1);
  pick.token = draw(candidates_, words[0]);
  return {};
}

Result<void> Sampler::score(std::span<const float> logits, TokenId token, int32_t n_logprobs, Pick& pick) {
  pick.top.clear();
  CANDOR_TRY(candidates_.load(logits));
  measure(n_logprobs, pick);
  pick.token = token;
  pick.logprob = to_logprob(logits[static_cast<size_t>(token)], log_total_);
  return {};
}

bool Sampler::score(const backend::RowSummary& row, TokenId token, int32_t n_logprobs, Pick& pick) {
  pick.top.clear();
  if (!row.is_valid || !measure_model(row, n_logprobs, pick)) return false;
  pick.token = token;
  pick.logprob = to_logprob(row.asked, log_total_);
  return true;
}

Result<void> Sampler::pick(const PickRequest& request, Pick& pick) {
  pick.top.clear();
  pick.logprob = 0.0f;
  CANDOR_TRY(candidates_.load(request.logits));
  observe(request, "logits", candidates_);
  const bool wants_logprobs = request.n_logprobs >= 0;
  const bool of_model = request.logprobs_of == LogprobsOf::kModel;
  if (wants_logprobs && of_model) measure(request.n_logprobs, pick);
  CANDOR_TRY(choose(request, pick));
  if (!wants_logprobs) return {};
  if (!of_model) measure(request.n_logprobs, pick);
  const float* logit = of_model ? &request.logits[static_cast<size_t>(pick.token)] : candidates_.find(pick.token);
  pick.logprob = to_logprob(*logit, log_total_);
  return {};
}

// As measure() of candidates that are all tokens.
bool Sampler::measure_model(const backend::RowSummary& row, int32_t n_logprobs, Pick& pick) {
  const size_t n = static_cast<size_t>(std::max(0, n_logprobs));
  if (row.best.size() < n && !row.is_whole) return false;
  log_total_ = static_cast<double>(row.greatest) + log_f64(static_cast<double>(row.total) * kWeightUnit);
  for (const backend::BestLogit& best : row.best.first(std::min(n, row.best.size()))) {
    pick.top.push_back({best.token, to_logprob(best.models, log_total_)});
  }
  return true;
}

bool Sampler::finish(const PickRequest& request, const RowFindings& row, Pick& pick) {
  pick.top.clear();
  pick.logprob = 0.0f;
  if (!row.choice->is_valid || row.choice->best.empty() || !row.model->is_valid) return false;
  const bool wants_logprobs = request.n_logprobs >= 0;
  const bool of_model = request.logprobs_of == LogprobsOf::kModel;
  if (wants_logprobs && of_model && !measure_model(*row.model, request.n_logprobs, pick)) return false;
  candidates_.load(*row.choice, row.plan->choice, row.rest);
  const PhiloxWords words = random_words(request.key.seed, request.key.choice, request.key.position);
  const ChainInput input{request.chain, request.history, words[1], nullptr, row.plan->n_stages};
  if (!run_chain(candidates_, input, scratch_) || !candidates_.is_certain()) return false;
  if (request.chain.is_greedy()) candidates_.keep_first(1);
  pick.token = draw(candidates_, words[0]);
  if (wants_logprobs && !of_model) measure(request.n_logprobs, pick);
  if (!candidates_.is_certain()) return false;
  if (!wants_logprobs) return true;
  const auto best = std::ranges::find(row.choice->best, pick.token, &backend::BestLogit::token);
  const backend::BestLogit& chosen = best != row.choice->best.end() ? *best : candidates_.reached()->last;
  const float* logit = candidates_.find(pick.token);
  pick.logprob = to_logprob(of_model ? chosen.models : logit != nullptr ? *logit : chosen.logit, log_total_);
  return true;
}

Result<void> Sampler::prepare(const PickRequest& request, Pick& pick) {
  pick.top.clear();
  CANDOR_TRY(candidates_.load(request.logits));
  observe(request, "logits", candidates_);
  measure(request.n_logprobs, pick);
  return edit(request);
}

TokenLogprob Sampler::scored(size_t rank) {
  const Candidate candidate = candidates_.at(rank);
  return {candidate.token, to_logprob(candidate.logit, log_total_)};
}

void Sampler::narrow(const PickRequest& request, size_t n, Pick& pick) {
  candidates_.keep_first(n);
  pick.top.clear();
  measure(request.n_logprobs, pick);
}

float Sampler::logprob_of(const PickRequest& request, TokenId token) {
  const bool of_model = request.logprobs_of == LogprobsOf::kModel;
  const float* logit = of_model ? &request.logits[static_cast<size_t>(token)] : candidates_.find(token);
  return logit != nullptr ? to_logprob(*logit, log_total_) : kNoLogprob;
}

}  // namespace candor::sample
