#pragma once
// Advances sequences after a step: counts computed rows, appends accepted tokens, publishes full blocks to the prefix
// index, and frees blocks when drafts were rejected, the attention window has moved on, or a full context is cropped.
// Engine thread only.

#include <cstdint>
#include <span>

#include "candor/request.h"
#include "sched/scheduler_state.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace candor::sched {

class Progress {
 public:
  // Borrows the state.
  explicit Progress(SchedulerState& state) : state_(&state) {}

  // The slice was computed, and the sequence goes on with these tokens; with none it pauses. REQUIRES: all but the last
  // are its draft's first.
  void settle(Sequence& sequence, const PlannedSlice& slice, std::span<const TokenId> tokens);
  // So many rows more were computed.
  void advance(Sequence& sequence, int32_t n_rows);
  // One token more. REQUIRES: not is_full().
  void accept(Sequence& sequence, TokenId token);
  bool is_full(const Sequence& sequence) const {
    return sequence.on_full == OnContextFull::kStop && sequence.n_tokens() >= state_->options.n_ctx;
  }

 private:
  void crop(Sequence& sequence);

  SchedulerState* state_;
};

}  // namespace candor::sched
