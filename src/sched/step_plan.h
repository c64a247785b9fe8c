#pragma once
// What one step computes: plain arrays for the backend, and who they belong to. Filled by Scheduler::plan(), valid
// until its next call; the vectors are reused from step to step.

#include <cstdint>
#include <span>
#include <vector>

#include "backend/step_batch.h"
#include "kv/block_manager.h"
#include "sched/sequence.h"

namespace candor::sched {

// Rows [first_row, first_row + n_rows) of the batch belong to `sequence`. The last one's logits are row `out_row` of
// the step's result; -1 where the rows end before the sequence does, so that nothing is chosen.
struct PlannedSlice {
  const Sequence* sequence = nullptr;
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t out_row = -1;
};

class StepPlan {
 public:
  std::vector<PlannedSlice> slices{};
  std::vector<kv::BlockCopy> copies{};  // to be done before the step
  int32_t n_prefill_rows = 0;           // rows whose token was known before the last step
  int32_t n_preempted = 0;

  bool is_empty() const { return slices.empty(); }
  backend::StepBatch batch() const { return {tokens, positions, seqs, block_table, max_blocks, out_rows}; }

  // The arrays of batch().
  std::vector<TokenId> tokens{};
  std::vector<int32_t> positions{};
  std::vector<backend::SeqSlice> seqs{};
  std::vector<BlockId> block_table{};
  std::vector<int32_t> out_rows{};
  int32_t max_blocks = 0;
};

// What was chosen for one slice: what the sequence goes on with, or that it ends.
struct Outcome {
  SequenceId sequence = 0;
  TokenId token = kNoToken;  // appended, unless the sequence is finished
  bool is_finished = false;
};

}  // namespace candor::sched
