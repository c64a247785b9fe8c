#pragma once
// Decides how many rows (tokens) of a step each running sequence gets: one if it decodes, one for each token of its
// draft, and then chunks of prompts. size_prompt_chunks() sets how much of a prompt a step reads: as much as the budget
// of rows, the time of the step (cost_model.h) and the limit on prompt logprob rows allow. Engine thread only.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sched/cost_model.h"
#include "sched/scheduler_state.h"
#include "sched/sequence_pool.h"
#include "sched/step_plan.h"

namespace candor::sched {

class RowSharing {
 public:
  // Borrows the state.
  explicit RowSharing(const SchedulerState& state);

  // Shares a step out among those that run, anew.
  void share(const StepBudget& budget);
  // The share of sequence i of those that run, in turn.
  RowShare of(size_t i) const { return row_shares_[i]; }
  // It computes no draft after all. False where it had none.
  bool drop_draft(size_t i);
  // The last in turn does not run any more.
  void drop_last() { row_shares_.pop_back(); }
  // What was shared out.
  const StepWork& work() const { return work_; }

 private:
  const std::vector<SequencePool::Owned>& running() const { return state_->sequences.running(); }
  void share_decoding();
  void share_drafts(const StepBudget& budget);
  void size_prompt_chunks(const StepBudget& budget);
  void share_whole(const StepBudget& budget);
  bool awaits_image() const;
  void fit_images(size_t i, const StepBudget& budget);
  int32_t rows_that_fit(size_t i, int32_t n_most) const;
  int32_t rows_that_show(size_t i, int32_t n_most) const;
  void give_rows(size_t i, int32_t n_rows);

  const SchedulerState* state_;
  std::vector<RowShare> row_shares_;  // [running]
  std::vector<size_t> readers_;       // of those that run: who reads a prompt
  StepWork work_;                     // given so far; of rows with logits, those of sequences that decode
  int64_t n_shown_left_ = 0;
  int64_t limit_ns_ = 0;
};

}  // namespace candor::sched
