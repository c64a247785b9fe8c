#pragma once
// Decides what each step computes. Sequences wait, run together in one ragged batch, fork, hold, and leave when the
// engine says so. Deterministic: the same calls give the same plans; it reads no clock.
//
// - Turns: by rank (the priority, plus one for every kStepsPerRank plans waited, so that nobody waits for ever), then
//   preempted ones, then the least served key, then the order of arrival.
// - Admission: when a place and the blocks for all known tokens are there; leading blocks come from the prefix index.
//   A higher rank takes the place and blocks of a lower one.
// - A step: one row for every sequence that decodes, and its draft; then prompt chunks, within the budget. Of these the
//   first in turn gets half or more, the shortest of the others the rest, so that neither kind starves.
// - Blocks: when a growing sequence finds none, the last in turn gives its blocks up and waits; it is computed again
//   later (to the same bits). The first always gets what it needs, so everyone finishes.
// - Sequences that hold give way where nothing else could be computed, so that holders never keep out those that
//   everyone waits for.
// - A prompt that is shown is read in chunks of at most max_shown_rows, and takes nothing from the prefix index that it
//   has not shown.
// - A full context: kStop leaves the decision to the engine (is_full); kCrop drops the oldest token and computes the
//   rest again.
// One engine thread owns a scheduler. After as many sequences as ever run at once it allocates nothing.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backend/op_specs.h"
#include "base/error.h"
#include "kv/block_manager.h"
#include "sched/cost_model.h"
#include "sched/fair_share.h"
#include "sched/step_plan.h"

namespace candor::sched {

inline constexpr int64_t kStepsPerRank = 256;

struct SchedulerOptions {
  int32_t n_ctx = 0;     // most tokens of a sequence in the K/V store
  int32_t n_blocks = 0;  // of the pool; must hold n_ctx tokens
  int32_t block_tokens = backend::kBlockTokens;
  int32_t max_running = 16;
  int32_t max_queued = 128;
  int32_t window_tokens = 0;  // no layer looks further back; 0 = some layer sees everything
  bool use_prefix_index = true;
  bool use_kv_cache = true;  // false: everything is computed again for every token
  CostModel costs{};
  kv::PrefixHash hash = kv::hash_prefix;
};

class Scheduler {
 public:
  // REQUIRES: n_ctx >= 1, max_running >= 1, n_blocks hold n_ctx tokens.
  explicit Scheduler(const SchedulerOptions& options);

  // Queues a sequence. Refuses: a full queue (kOverloaded), no token (kInvalidInput), more tokens than fit
  // (kContextLength). Where memory runs out nothing changes. REQUIRES: an id that is not in work.
  Result<void> add(const SequenceSpec& spec);

  // Builds the next step. Empty only when nothing waits or runs, or all hold.
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
  // Guesses of the tokens that follow, to be checked by the next step. They are used where the sequence decodes, and as
  // far as budget, context and free blocks allow; then they are forgotten.
  void set_draft(SequenceId id, std::span<const TokenId> guesses);

  // True when a sequence has no room for one more token and does not crop: it must be finished.
  bool is_full(const Sequence& sequence) const {
    return sequence.on_full == OnContextFull::kStop && sequence.n_tokens() >= options_.n_ctx;
  }
  const Sequence* find(SequenceId id) const;
  bool is_idle() const { return running_.empty() && waiting_.empty(); }
  int32_t n_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t n_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  // In turn; for whoever proposes drafts.
  const Sequence& running(int32_t i) const { return *running_[static_cast<size_t>(i)]; }
  const kv::BlockManager& blocks() const { return blocks_; }
  const FairShare& shares() const { return shares_; }

 private:
  using Owned = std::unique_ptr<Sequence>;
  // Of one running sequence in the plan in the making.
  struct RowShare {
    int32_t n_rows = 0;   // of known tokens
    int32_t n_draft = 0;  // behind them
  };

  // scheduler.cpp: sequences
  Owned blank();
  void recycle(Owned sequence);
  void insert_running(Owned sequence);
  void leave(size_t running_index);
  void settle(Sequence& sequence, const PlannedSlice& slice, std::span<const TokenId> tokens);
  void advance(Sequence& sequence, int32_t n_rows);
  void accept(Sequence& sequence, TokenId token);
  void crop(Sequence& sequence);
  Sequence* find_mutable(SequenceId id);

  // admission.cpp: who runs
  void admit();
  void admit_over_holders();
  size_t next_in_turn() const;  // waiting_.size() where nobody wants a place
  bool is_before(const Sequence& a, const Sequence& b) const;
  int32_t rank_now(const Sequence& sequence) const;
  bool admit_over_lower_ranks(Sequence& sequence);
  bool can_gain(const Sequence& sequence) const;
  bool try_admit(Sequence& sequence);
  bool has_place_for(const Sequence& sequence) const;
  void preempt_last();

  // plan.cpp: rows, blocks, arrays
  void share_rows(const StepBudget& budget);
  void share_decoding();
  void share_drafts(const StepBudget& budget);
  void share_prompts(const StepBudget& budget);
  int32_t rows_that_fit(size_t i, int32_t n_most) const;
  int32_t rows_to_show(const Sequence& sequence, int32_t end) const;
  int32_t rows_that_show(size_t i, int32_t n_most) const;
  void give_rows(size_t i, int32_t n_rows);
  void reserve_blocks();
  bool reserve(size_t i);
  void build_batch();
  void append_slice(const Sequence& sequence, RowShare share);
  void append_blocks();

  // Constant after construction.
  SchedulerOptions options_;
  // Engine thread only.
  kv::BlockManager blocks_;
  FairShare shares_;
  std::vector<Owned> waiting_;  // in no order
  std::vector<Owned> running_;  // in turn
  std::vector<Owned> spare_;    // for the next ones, so that their memory is used again
  int64_t n_arrived_ = 0;
  int64_t n_plans_ = 0;
  // Of the plan in the making.
  std::vector<RowShare> row_shares_;  // [running]
  std::vector<size_t> readers_;       // of running_: those that read prompts, in turn
  StepWork work_;                     // given so far; of rows with logits, those of sequences that decode
  int64_t n_shown_left_ = 0;
  int64_t limit_ns_ = 0;
  StepPlan plan_;
};

}  // namespace candor::sched
