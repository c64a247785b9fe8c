#include "engine/step/late_masks.h"

#include <algorithm>
#include <cstddef>

namespace candor::engine {
namespace {

// What a step may wait for masks, all sequences together: a share of what it takes, but what a thread needs to wake up
// in any case.
constexpr int64_t kWaitShare = 4;
constexpr int64_t kLeastWaitNs = 200'000;
constexpr int64_t kMostWaitNs = 1'000'000;
constexpr int64_t kLoneWaitNs = 20'000'000;  // where nobody else waits
// What constraints may take of it to accept tokens: those of usual schemas take some 10 us.
constexpr int64_t kMostAcceptNs = 1'000'000;

}  // namespace

LateMasks::LateMasks(Inbox& inbox, MetricStore& metrics, int32_t max_rows)
    : metrics_(metrics), worker_([&inbox] { inbox.wake(); }) {
  kept_.reserve(static_cast<size_t>(max_rows));
}

void LateMasks::begin_step() {
  accept_left_ns_ = kMostAcceptNs;
}

void LateMasks::allow_waiting(int64_t step_ns, bool is_alone) {
  worker_.allow_waiting(is_alone ? kLoneWaitNs : std::clamp(step_ns / kWaitShare, kLeastWaitNs, kMostWaitNs));
}

bool LateMasks::has(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text) {
  return !OutputView{constraint.get(), text}.needs_mask() || worker_.has(constraint);
}

void LateMasks::want(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text) {
  if (OutputView{constraint.get(), text}.needs_mask()) worker_.want(constraint);
}

// Where masks are slow, so is accepting a token, but for the first. The worker does that, and what does not fit a step.
bool LateMasks::can_accept(const Choice& choice) const {
  const bool accepts = OutputView{choice.constraint.get(), choice.output}.needs_mask() && choice.n_made > 0;
  if (!accepts || choice.constraint->is_ahead()) return true;
  return !choice.constraint->is_slow() && accept_left_ns_ > 0;
}

void LateMasks::count_accepted(const Choice& choice) {
  if (choice.constraint != nullptr) accept_left_ns_ -= choice.constraint->accept_ns();
}

void LateMasks::send() noexcept {
  try {
    worker_.send();
  } catch (...) {
    metrics_.n_faults.add();
  }
}

void LateMasks::keep(SequenceId sequence, KeptRow& row, const PickInput& input) {
  const auto logits = input.logits.get();
  row.logits.assign(logits.begin(), logits.end());
  row.draft = input.draft;
  row.attention = input.attention;
  if (std::ranges::find(kept_, sequence) == kept_.end()) kept_.push_back(sequence);
}

}  // namespace candor::engine
