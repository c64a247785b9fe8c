#pragma once
// Decides what each step computes. Sequences wait, run together in one ragged batch, fork, pause, and leave when the
// engine says so. Deterministic: the same calls give the same plans; it reads no clock.
//
// - Turns: by rank (the priority, plus one for every kStepsPerRank plans waited, so that nobody waits for ever), then
//   preempted ones, then the least served key, then the order of arrival.
// - Admission: when a running slot ("place", max_running of them) and the blocks for all known tokens are free; leading
//   blocks come from the prefix index. A higher rank takes the place and blocks of a lower one.
// - A step: one row for every sequence that decodes, and its draft; then prompt chunks, within the budget. Of these the
//   first in turn gets half or more, the shortest of the others the rest, so that neither kind starves. The chunks'
//   sizes are decided in RowSharing::size_prompt_chunks() (row_sharing.h).
// - Blocks: when a growing sequence finds none, the last in turn gives its blocks up and waits; it is computed again
//   later (to the same bits). The first always gets what it needs, so everyone finishes.
// - Paused sequences are preempted where nothing else could be computed, so that they never keep out those that
//   everyone waits for.
// - A prompt that is shown (the request wants results inside it: prompt logprobs, a mean of hidden states) is read in
//   chunks of at most max_shown_rows, and takes nothing from the prefix index that it has not shown.
// - Where models see ahead (reads_whole) a step reads whole sequences alone, as many as there are rows for, in turn.
// - A full context: kStop leaves the decision to the engine (is_full); kCrop drops the oldest token and computes the
//   rest again.
// One engine thread owns a scheduler. After as many sequences as ever run at once it allocates nothing.

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "base/ids.h"
#include "kv/block_manager.h"
#include "sched/admission.h"
#include "sched/fair_share.h"
#include "sched/progress.h"
#include "sched/row_sharing.h"
#include "sched/scheduler_options.h"
#include "sched/scheduler_state.h"
#include "sched/sequence.h"
#include "sched/sequence_pool.h"
#include "sched/state_saves.h"
#include "sched/step_plan.h"

namespace candor::sched {

class Scheduler {
 public:
  // REQUIRES: n_ctx >= 1, max_running >= 1, n_blocks hold n_ctx tokens.
  explicit Scheduler(const SchedulerOptions& options);

  // Queues a sequence. Refuses: a full queue (kOverloaded), no token (kInvalidInput), more tokens than fit
  // (kContextLength). Where memory runs out nothing changes. REQUIRES: an id that is not in work.
  Result<void> add(const SequenceSpec& spec);

  // Builds the next step. Empty only when nothing waits or runs, or all are paused.
  const StepPlan& plan(const StepBudget& budget);
  // The plan was computed: one outcome for each slice that has logits, in their order.
  void commit(std::span<const Outcome> outcomes);

  // Between commit() and plan(), on sequences in work:
  // Forgets the sequence and frees its blocks at once. False for an unknown id.
  bool remove(SequenceId id);
  // A second sequence in the same state as `parent`, sharing its blocks until one of them writes. It runs beside its
  // parent where a place is free, else it waits and computes again. Where memory runs out nothing changes. REQUIRES:
  // `child` is not in work.
  void fork(SequenceId parent, SequenceId child);
  // The sequence goes on with `token`. REQUIRES: not is_full().
  void append(SequenceId id, TokenId token);
  // Drafts of the tokens that follow, to be checked by the next step. They are used where the sequence decodes, and as
  // far as budget, context and free blocks allow; then they are forgotten.
  void set_draft(SequenceId id, std::span<const TokenId> drafts);

  // True when a sequence has no room for one more token and does not crop: it must be finished.
  bool is_full(const Sequence& sequence) const { return progress_.is_full(sequence); }
  const Sequence* find(SequenceId id) const { return state_->sequences.find(id); }
  bool is_idle() const { return n_running() == 0 && n_waiting() == 0; }
  int32_t n_running() const { return state_->sequences.n_running(); }
  int32_t n_waiting() const { return state_->sequences.n_waiting(); }
  // In turn; for the proposer of drafts.
  const Sequence& running(int32_t i) const { return *state_->sequences.running()[static_cast<size_t>(i)]; }
  const kv::BlockManager& blocks() const { return state_->blocks; }
  // Between commit() and plan().
  kv::BlockManager& blocks() { return state_->blocks; }
  const FairShare& shares() const { return state_->shares; }

 private:
  void let_go(SequencePool::Owned sequence);
  void reserve_blocks();
  bool reserve(Sequence& sequence, RowShare share);
  void build_plan();

  // Engine thread only.
  std::unique_ptr<SchedulerState> state_;
  Admission admission_;
  RowSharing rows_;
  StateSaves saves_;
  Progress progress_;
  StepPlan plan_;
  int64_t n_arrived_ = 0;
};

}  // namespace candor::sched
