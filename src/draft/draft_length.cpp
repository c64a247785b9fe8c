#include "draft/draft_length.h"

#include <algorithm>

namespace candor::draft {
namespace {

constexpr double kDecay = 0.9;       // a guess counts for about ten
constexpr double kLeastGain = 1.03;  // below it, noise decides
constexpr int32_t kMostPatience = 1024;

}  // namespace

int32_t DraftLength::choose(int32_t most, const RowCost& cost) const {
  most = std::clamp(most, 0, kMaxGuesses);
  if (most == 0) return 0;
  const double plain = cost(1);
  const double share = std::clamp(acceptance(), 0.0, 0.99);
  int32_t best = 0;
  double best_gain = kLeastGain;
  double n_tokens = 1.0;  // expected of the step: 1 + share + share^2 + ...
  double chance = 1.0;
  for (int32_t n = 1; n <= most; ++n) {
    chance *= share;
    n_tokens += chance;
    const double cost_now = cost(1 + n);
    const double gain = cost_now > 0.0 ? n_tokens * plain / cost_now : n_tokens;
    if (gain <= best_gain) continue;
    best = n;
    best_gain = gain;
  }
  return best == 0 && n_idle_ >= patience_ ? 1 : best;
}

void DraftLength::record(int32_t n_guessed, int32_t n_right) {
  if (n_guessed == 0) {
    ++n_idle_;
    return;
  }
  has_begun_ = true;
  const int32_t n_tried = std::min(n_right + 1, n_guessed);  // what stands behind a wrong guess was not tried
  n_right_ = n_right_ * kDecay + n_right;
  n_tried_ = n_tried_ * kDecay + n_tried;
  if (n_idle_ >= patience_) patience_ = n_right > 0 ? 32 : std::min(2 * patience_, kMostPatience);
  n_idle_ = 0;
}

}  // namespace candor::draft
