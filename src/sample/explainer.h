#pragma once
// Records what each stage of the sampler did, for a request that wants to see it. One for each sampler; reused from
// token to token, on its thread.

#include <cstddef>
#include <string_view>
#include <vector>

#include "candor/event.h"
#include "sample/bans.h"
#include "sample/candidates.h"
#include "sample/chain.h"
#include "sample/history.h"

namespace candor::sample {

class Explainer final : public ChainObserver {
 public:
  static constexpr size_t kShown = 8;

  // n_shown: how many candidates a stage shows as the best, and of those that it cut.
  explicit Explainer(size_t n_shown = kShown) : n_shown_(n_shown) {}
  // Where the next choice is recorded, and what stands before it; both borrowed until the next call.
  void begin(TokenExplanation& explanation, const History& history, const BanParams& bans);
  void on_stage(std::string_view name, Candidates& candidates) override;

 private:
  struct Watched {
    TokenId token = kNoToken;
    float logit = 0.0f;  // after the stage before; -inf where it is no candidate
  };

  void show_best(Candidates& candidates, double total, StageView& stage) const;
  void tell_the_missing(Candidates& candidates, double total, StageView& stage) const;
  void tell_the_changed(Candidates& candidates, StageView& stage);
  void remember(Candidates& candidates, double total);

  size_t n_shown_;
  TokenExplanation* explanation_ = nullptr;
  History history_{};
  std::vector<Watched> watched_;  // what penalties, DRY and biases may change: tokens of the text, and biased ones
  std::vector<StageView::Candidate> before_;  // the best after the stage before
  double total_before_ = 0.0;                // of weights, in units of the greatest logit's
  double greatest_before_ = 0.0;
};

}  // namespace candor::sample
