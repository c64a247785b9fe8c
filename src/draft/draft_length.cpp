#include "draft/draft_length.h"

#include <algorithm>
#include <cstddef>

namespace candor::draft {
namespace {

constexpr double kDecay = 0.9;       // a draft counts for about ten
constexpr double kLeastGain = 1.05;  // below it, noise decides
constexpr double kMostLoss = 0.01;   // of the time without drafts
constexpr double kFirstLoss = 1.0;   // and of one step
constexpr int32_t kLeastPatience = 32;
constexpr int32_t kMostPatience = 1024;
constexpr int32_t kTrialDrafts = 4;
constexpr double kOldNews = 0.5;  // the weight of what was seen before a trial

}  // namespace

int32_t DraftLength::choose(int32_t most, const DraftCosts& costs) const {
  most = std::clamp(most, 0, kMaxDrafts);
  const double share = std::clamp(acceptance(), 0.0, 0.99);
  const double affordable = budget_ + kFirstLoss * costs.plain;
  int32_t best = 0;
  double best_gain = kLeastGain;
  double n_tokens = 1.0;  // expected of the step: 1 + share + share^2 + ...
  double chance = 1.0;
  for (int32_t n = 1; n <= most; ++n) {
    const double extra = costs.extra[static_cast<size_t>(n)];
    if (extra > affordable) break;
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
  return is_on_trial && costs.extra[1] <= affordable ? 1 : 0;
}

double DraftLength::give(double needed) {
  const double given = std::max(0.0, budget_ - needed);
  budget_ -= given;
  return given;
}

void DraftLength::pay(double plain, double extra) {
  plain_ = plain;
  budget_ -= extra;
}

void DraftLength::record(int32_t n_drafted, int32_t n_accepted) {
  budget_ += (n_accepted + kMostLoss * (n_accepted + 1)) * plain_;
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
  const int32_t n_tried = std::min(n_accepted + 1, n_drafted);  // what stands behind a rejected draft was not tried
  n_accepted_ = n_accepted_ * kDecay + n_accepted;
  n_tried_ = n_tried_ * kDecay + n_tried;
}

}  // namespace candor::draft
