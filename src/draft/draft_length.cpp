#include "draft/draft_length.h"

#include <algorithm>

namespace candor::draft {
namespace {

constexpr double kDecay = 0.9;       // a guess counts for about ten
constexpr double kLeastGain = 1.05;  // below it, noise decides
constexpr double kMostLoss = 0.01;   // of the time without guesses
constexpr int32_t kLeastPatience = 32;
constexpr int32_t kMostPatience = 1024;
constexpr int32_t kTrialGuesses = 4;
constexpr double kOldNews = 0.5;  // the weight of what was seen before a trial

}  // namespace

int32_t DraftLength::choose(int32_t most, const GuessCosts& costs) const {
  most = std::clamp(most, 0, kMaxGuesses);
  const double share = std::clamp(acceptance(), 0.0, 0.99);
  int32_t best = 0;
  double best_gain = kLeastGain;
  double n_tokens = 1.0;  // expected of the step: 1 + share + share^2 + ...
  double chance = 1.0;
  for (int32_t n = 1; n <= most; ++n) {
    const double extra = costs.extra[static_cast<size_t>(n)];
    if (extra > budget_) break;
    chance *= share;
    n_tokens += chance;
    const double paid = costs.plain + extra;
    const double gain = paid > 0.0 ? n_tokens * costs.plain / paid : n_tokens;
    if (gain <= best_gain) continue;
    best = n;
    best_gain = gain;
  }
  if (best > 0 || most == 0) return best;
  const bool is_on_trial = n_trial_ > 0 || n_idle_ >= patience_;
  return is_on_trial && costs.extra[1] <= budget_ ? 1 : 0;
}

void DraftLength::pay(double plain, double extra) {
  plain_ = plain;
  budget_ -= extra;
}

void DraftLength::record(int32_t n_guessed, int32_t n_right) {
  budget_ += (n_right + kMostLoss * (n_right + 1)) * plain_;
  if (n_guessed == 0) {
    ++n_idle_;
    return;
  }
  if (n_idle_ >= patience_) {
    n_trial_ = kTrialGuesses;
    n_right_ *= kOldNews;
    n_tried_ *= kOldNews;
    patience_ = std::min(2 * patience_, kMostPatience);
  }
  if (n_right > 1) patience_ = kLeastPatience;
  n_trial_ = std::max(0, n_trial_ - 1);
  n_idle_ = 0;
  const int32_t n_tried = std::min(n_right + 1, n_guessed);  // what stands behind a wrong guess was not tried
  n_right_ = n_right_ * kDecay + n_right;
  n_tried_ = n_tried_ * kDecay + n_tried;
}

}  // namespace candor::draft
