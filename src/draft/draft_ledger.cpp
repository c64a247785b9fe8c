#include "draft/draft_ledger.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace candor::draft {
namespace {

constexpr double kMostLoss = 0.01;  // of the time without drafts
constexpr double kFirstLoss = 1.0;  // and of one step

}  // namespace

double DraftLedger::give(double needed) {
  const double given = std::max(0.0, budget_ - needed);
  budget_ -= given;
  return given;
}

DraftOffer DraftLedger::offer(DraftSource source, int32_t most, const DraftCosts& costs) const {
  return of(source).choose(most, costs, budget_ + kFirstLoss * costs.plain);
}

DraftOffer DraftLedger::trial(DraftSource source, int32_t most, const DraftCosts& costs) const {
  return of(source).trial(most, costs, budget_ + kFirstLoss * costs.plain);
}

void DraftLedger::pay(const DraftedStep& step) {
  step_ = step;
  budget_ -= step.extra;
  if (step.n_drafts > 0) of(step.source).guess({});
}

DraftedStep DraftLedger::record(int32_t n_drafted, int32_t n_accepted) {
  budget_ += (n_accepted + kMostLoss * (n_accepted + 1)) * step_.plain;
  for (DraftLength& length : lengths_) {
    const bool is_drafter = step_.n_drafts > 0 && &length == &of(step_.source);
    length.record(is_drafter ? n_drafted : 0, is_drafter ? n_accepted : 0);
  }
  const DraftedStep step = step_;
  step_.n_drafts = 0;
  return step;
}

void DraftLedger::judge(std::span<const TokenId> text, int64_t n_made) {
  const auto n_new = static_cast<size_t>(std::max<int64_t>(0, n_made - std::exchange(n_judged_, n_made)));
  if (n_new == 0) return;
  const auto said = n_new <= text.size() ? text.last(n_new) : std::span<const TokenId>();
  for (DraftLength& length : lengths_) length.judge(said);
}

}  // namespace candor::draft
