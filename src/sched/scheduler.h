#pragma once
// Decides what each step computes. Sequences wait in the order of their arrival, run together in one ragged batch, and
// leave when the engine says so. Deterministic: the same calls give the same plans; it reads no clock.
//
// - Admission: in order, when a place and the blocks for all known tokens are there; leading blocks come from the
//   prefix index where they match.
// - A step: one row for every sequence that waits for one token, then prompt chunks in order of admission, within the
//   budget.
// - Blocks: when a growing sequence finds none, the youngest running one gives its blocks up and waits at the front; it
//   is computed again later (to the same bits). The oldest always gets what it needs, so everyone finishes.
// - A full context: kStop leaves the decision to the engine (is_full); kCrop drops the oldest token and computes the
// rest
//   again.
// One engine thread owns a scheduler.

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "backend/op_specs.h"
#include "base/error.h"
#include "kv/block_manager.h"
#include "sched/step_plan.h"

namespace candor::sched {

struct SchedulerOptions {
  int32_t n_ctx = 0;     // most tokens of a sequence in the K/V store
  int32_t n_blocks = 0;  // of the pool; must hold n_ctx tokens
  int32_t block_tokens = backend::kBlockTokens;
  int32_t max_running = 16;
  int32_t max_queued = 128;
  bool use_prefix_index = true;
  bool use_kv_cache = true;  // false: everything is computed again for every token
  kv::PrefixHash hash = kv::hash_prefix;
};

// What a step may cost; an input of plan(), so that whoever knows costs decides and plans still replay.
struct StepBudget {
  int32_t max_rows = 256;          // at least SchedulerOptions::max_running
  int32_t max_prefill_rows = 256;  // of them, for sequences that read more than one token
};

class Scheduler {
 public:
  // REQUIRES: n_ctx >= 1, max_running >= 1, n_blocks hold n_ctx tokens.
  explicit Scheduler(const SchedulerOptions& options);

  // Queues a sequence. Refuses: a full queue (kOverloaded), no token (kInvalidInput), more tokens than fit
  // (kContextLength). REQUIRES: an id that was never used.
  Expected<void> add(SequenceSpec spec);
  // Forgets the sequence and frees its blocks at once. False for an unknown id. Not between plan() and commit().
  bool remove(SequenceId id);

  // Builds the next step. Empty only when nothing waits or runs.
  const StepPlan& plan(const StepBudget& budget);
  // The plan was computed: one outcome for each slice that has an out_row, in their order.
  void commit(std::span<const Outcome> outcomes);

  // True when a sequence has no room for one more token and does not crop: it must be finished.
  bool is_full(const Sequence& sequence) const {
    return sequence.on_full == OnFull::kStop && sequence.n_tokens() >= options_.n_ctx;
  }
  const Sequence* find(SequenceId id) const;
  bool is_idle() const { return running_.empty() && waiting_.empty(); }
  int32_t n_running() const { return static_cast<int32_t>(running_.size()); }
  int32_t n_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  const kv::BlockManager& blocks() const { return blocks_; }

 private:
  using Owned = std::unique_ptr<Sequence>;

  void admit();
  bool try_admit(Sequence& sequence);
  void share_rows(const StepBudget& budget);
  void reserve_blocks();
  bool reserve(size_t i);
  void preempt_youngest();
  void build_batch();
  void append_slice(Sequence& sequence, int32_t n_rows);
  void append_blocks();
  void advance(Sequence& sequence, const PlannedSlice& slice);
  void accept(Sequence& sequence, TokenId token);
  void crop(Sequence& sequence);

  // Constant after construction.
  SchedulerOptions options_;
  // Engine thread only.
  kv::BlockManager blocks_;
  std::deque<Owned> waiting_;    // in order of arrival; preempted ones first
  std::vector<Owned> running_;   // in order of admission
  std::vector<int32_t> n_rows_;  // [running], of the plan in the making
  StepPlan plan_;
};

}  // namespace candor::sched
