#pragma once
// Which recurrent states a step saves, and which of them stay behind as checkpoints for a shared prefix. Behind a
// slice's known tokens and behind each of its drafts always, so that every sequence can go on; at some borders of
// blocks inside a prompt where slots are to be had:
//
// - its last one that leaves a token to compute, where the same prompt and the next turn of a chat find it; where
//   hardly a token stands behind it, the one before too, since templates end a prompt otherwise once an answer follows;
// - where its first messages end, behind a system prompt that others may share;
// - where its beginning was known further than there was a state: there texts part;
// - a few borders spread over it, at multiples of a power of two, as long as no slot is wanted.
//
// Of what is generated, the newest border stays: where the next turn, or the sequence itself when it was preempted,
// goes on. Engine thread only.

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
