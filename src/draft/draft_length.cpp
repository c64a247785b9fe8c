#include "draft/draft_length.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace candor::draft {
namespace {

constexpr double kDecay = 0.9;       // a draft counts for about ten
constexpr double kLeastGain = 1.05;  // below it, noise decides
constexpr double kMostShare = 0.99;
constexpr double kStepsInTurn = 8.0;  // that a drafter drafts for, once it has begun
constexpr int32_t kLeastPatience = 32;
constexpr int32_t kMostPatience = 1024;
constexpr int32_t kTrialDrafts = 4;
constexpr double kOldNews = 0.5;  // the weight of what was seen before a trial

// The best number of drafts of which such a share is accepted.
DraftOffer best_offer(double share, int32_t most, const DraftCosts& costs, double affordable) {
  DraftOffer best{.gain = kLeastGain};
  const double spread = costs.once * (1.0 - 1.0 / kStepsInTurn);
  double n_tokens = 1.0;  // expected of the step: 1 + share + share^2 + ...
  double chance = 1.0;
  for (int32_t n = 1; n <= std::min(most, kMaxDrafts); ++n) {
    const double extra = costs.extra[static_cast<size_t>(n)];
    if (extra > affordable) break;
    chance *= share;
    n_tokens += chance;
    const double paid = costs.plain + extra - spread;
    const double gain = paid > 0.0 ? n_tokens * costs.plain / paid : n_tokens;
    if (gain > best.gain) best = {n, gain};
  }
  return best.n_drafts > 0 ? best : DraftOffer{};
}

}  // namespace

DraftOffer DraftLength::choose(int32_t most, const DraftCosts& costs, double affordable) const {
  return best_offer(std::clamp(acceptance(), 0.0, kMostShare), most, costs, affordable);
}

DraftOffer DraftLength::trial(int32_t most, const DraftCosts& costs, double affordable) const {
  const bool is_due = n_trial_ > 0 || n_idle_ >= patience_;
  if (!is_due || most < 1 || costs.extra[1] > affordable) return {};
  const DraftOffer hoped = best_offer(kMostShare, most, costs, std::numeric_limits<double>::infinity());
  return hoped.n_drafts > 0 ? DraftOffer{1, hoped.gain} : DraftOffer{};
}

void DraftLength::record(int32_t n_drafted, int32_t n_accepted) {
  if (n_drafted == 0) {
    ++n_idle_;
    return;
  }
  if (n_idle_ >= patience_) {
    n_trial_ = kTrialDrafts;
    n_accepted_ *= kOldNews;
    n_tried_ *= kOldNews;
    patience_ = std::min(2 * patience_, kMostPatience);
  }
  if (n_accepted > 1) patience_ = kLeastPatience;
  n_trial_ = std::max(0, n_trial_ - 1);
  n_idle_ = 0;
  count(std::min(n_accepted + 1, n_drafted), n_accepted);  // what stands behind a rejected draft was not tried
}

void DraftLength::count(int32_t n_tried, int32_t n_accepted) {
  n_accepted_ = n_accepted_ * kDecay + n_accepted;
  n_tried_ = n_tried_ * kDecay + n_tried;
  has_news_ = true;
}

void DraftLength::guess(std::span<const TokenId> drafts) {
  n_guesses_ = std::min(drafts.size(), kMostGuesses);
  std::ranges::copy(drafts.first(n_guesses_), guesses_.begin());
}

void DraftLength::judge(std::span<const TokenId> said) {
  const size_t n_known = std::min(n_guesses_, said.size());
  n_guesses_ = 0;
  if (n_known == 0) return;
  const auto guesses = std::span(guesses_).first(n_known);
  const auto wrong = std::ranges::mismatch(guesses, said.first(n_known)).in1;
  const auto n_right = static_cast<int32_t>(wrong - guesses.begin());
  count(std::min(n_right + 1, static_cast<int32_t>(n_known)), n_right);
}

}  // namespace candor::draft
