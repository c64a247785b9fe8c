#include "apps/explain/bare_sampler.h"

#include <cmath>
#include <utility>

#include "apps/terminal/terminal.h"
#include "kernels/kernels.h"
#include "platform/float_mode.h"
#include "sample/bans.h"
#include "sample/chain.h"
#include "sample/explainer.h"
#include "sample/params.h"
#include "sample/sampler.h"

namespace candor::apps {
namespace {

sample::BanParams bans_of(const SamplingParams& sampling, const sample::BanParams& start) {
  sample::BanParams bans = start;
  for (const LogitBias& bias : sampling.logit_bias) {
    if (bias.ban) bans.banned.push_back(bias.token);
    if (!bias.ban) bans.biases.push_back({bias.token, static_cast<float>(bias.bias)});
  }
  return bans;
}

class Bench {
 public:
  Bench(const BareChoice& choice, sample::ChainParams chain, const kernels::KernelTable& table)
      : choice_(choice), chain_(std::move(chain)), sampler_(table) {}

  Result<BareOutcome> run() {
    CANDOR_TRY(choose());
    CANDOR_TRY(state());
    CANDOR_TRY(draw());
    return std::move(outcome_);
  }

 private:
  sample::PickRequest request(const sample::ChainParams& chain, uint64_t position) const {
    sample::PickRequest pick{.logits = choice_.logits, .chain = chain};
    pick.history = {choice_.text, choice_.text.size()};
    pick.key = {.seed = choice_.sampling.seed.value_or(0), .choice = 0, .position = position};
    return pick;
  }

  Result<void> choose() {
    sample::PickRequest pick = request(chain_, 0);
    sample::Explainer explainer(choice_.n_shown);
    explainer.begin(outcome_.explanation, pick.history, chain_.bans);
    pick.observer = &explainer;
    outcome_.explanation.was_drawn = !chain_.is_greedy();
    outcome_.explanation.draw = static_cast<double>(sample::draw_of(pick.key));
    CANDOR_TRY(sampler_.pick(pick, pick_));
    outcome_.token = pick_.token;
    return {};
  }

  Result<void> state() {
    outcome_.probabilities.assign(choice_.logits.size(), 0.0);
    const bool may_exclude = !chain_.is_greedy() && chain_.xtc_probability > 0.0;
    const double share = may_exclude ? chain_.xtc_probability : 0.0;
    CANDOR_TRY(add_case(0.0, 1.0 - share));
    return may_exclude ? add_case(1.0, share) : Result<void>();
  }

  // The distribution where XTC never happens, or always, times its share of all draws.
  Result<void> add_case(double xtc_probability, double share) {
    if (share <= 0.0) return {};
    sample::ChainParams chain = chain_;
    chain.xtc_probability = xtc_probability;
    sample::PickRequest pick = request(chain, 0);
    pick.n_logprobs = static_cast<int32_t>(choice_.logits.size());
    pick.logprobs_of = sample::LogprobsOf::kChain;
    CANDOR_TRY(sampler_.pick(pick, pick_));
    for (const TokenLogprob& one : pick_.top)
      outcome_.probabilities[static_cast<size_t>(one.token)] += share * std::exp(static_cast<double>(one.logprob));
    return {};
  }

  Result<void> draw() {
    if (choice_.n_draws == 0) return {};
    outcome_.counts.assign(choice_.logits.size(), 0);
    for (; outcome_.n_drawn < choice_.n_draws && !interrupted(); ++outcome_.n_drawn) {
      CANDOR_TRY(sampler_.pick(request(chain_, static_cast<uint64_t>(outcome_.n_drawn)), pick_));
      ++outcome_.counts[static_cast<size_t>(pick_.token)];
    }
    return {};
  }

  const BareChoice& choice_;
  sample::ChainParams chain_;
  sample::Sampler sampler_;
  sample::Pick pick_;
  BareOutcome outcome_;
};

}  // namespace

Result<BareOutcome> sample_alone(const BareChoice& choice) {
  CANDOR_ASSIGN(sample::ChainParams chain, sample::make_chain_params(choice.sampling));
  CANDOR_ASSIGN(const kernels::KernelTable* table, kernels::select_table_from_environment());
  chain.bans = bans_of(choice.sampling, chain.bans);
  const platform::ScopedFloatMode float_mode;
  return Bench(choice, std::move(chain), *table).run();
}

}  // namespace candor::apps
