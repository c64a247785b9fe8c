#pragma once
// Decides which sequences run and which wait: admits them in turn, when a running slot ("place") and the blocks for all
// their known tokens are free, and preempts the last in turn for a higher rank, for a growing sequence that finds no
// block, and where all that run are paused. Engine thread only.

#include <cstddef>
#include <cstdint>

#include "sched/scheduler_state.h"
#include "sched/sequence.h"

namespace candor::sched {

class Admission {
 public:
  // Borrows the state.
  explicit Admission(SchedulerState& state) : state_(&state) {}

  // A plan begins: sequences that can run do.
  void admit();
  // The last in turn gives its blocks up and waits.
  void preempt_last();
  bool has_place_for(const Sequence& sequence) const;

  int64_t n_plans() const { return n_plans_; }
  // Since the plan began.
  int32_t n_preempted() const { return n_preempted_; }

 private:
  void admit_in_turn();
  void admit_over_holders();
  size_t next_in_turn() const;  // waiting().size() where nobody wants a place
  bool is_before(const Sequence& a, const Sequence& b) const;
  int32_t rank_now(const Sequence& sequence) const;
  bool admit_over_lower_ranks(Sequence& sequence);
  bool can_gain(const Sequence& sequence) const;
  bool try_admit(Sequence& sequence);

  SchedulerState* state_;
  int64_t n_plans_ = 0;
  int32_t n_preempted_ = 0;
};

}  // namespace candor::sched
