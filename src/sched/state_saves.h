#pragma once
// Decides which recurrent states (state-space and delta-rule layers) a step saves, and which of them remain as
// checkpoints from which another sequence with the same prefix can begin. A slice's state is always saved behind its
// known tokens and behind each draft, so that the sequence can continue. Engine thread only.
//
// Inside a prompt, states are saved at some block borders, while there are free slots:
//
// - the last border with a token behind it to compute: the same prompt, or the next turn of the chat, begins there; if
//   only a few tokens follow it, the border before it too, since templates end a prompt differently once an answer
//   follows;
// - the border where the first messages end, behind a system prompt that others may share;
// - the border up to which the prefix index knew the prompt's blocks without a state: texts diverge there;
// - up to a few borders spread over the prompt, at multiples of a power of two blocks, as long as no slot is wanted.
//
// Within generated text, the newest border is kept: the next turn continues there, or the sequence itself after a
// preemption.

#include <cstdint>

#include "kv/state_slots.h"
#include "sched/row_sharing.h"
#include "sched/scheduler_state.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace candor::sched {

class StateSaves {
 public:
  // Borrows the state.
  explicit StateSaves(SchedulerState& state) : state_(&state) {}

  // For all that compute something in the step.
  void plan(const RowSharing& rows);

 private:
  void plan(Sequence& sequence, RowShare share);
  kv::Keep keep_at(const Sequence& sequence, int32_t n_tokens) const;
  kv::Keep keep_at_border(const Sequence& sequence, int32_t border) const;

  SchedulerState* state_;
  int32_t n_others_ = 0;  // slots that the step needs in any case, yet to be planned
};

}  // namespace candor::sched
