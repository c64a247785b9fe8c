#pragma once
// The plan of one step: plain arrays for the backend (tokens, positions, block table, rows with logits), and which
// sequence each slice of rows belongs to. Scheduler::plan() fills it; it is valid until the next call. The vectors are
// reused from step to step.
//
// How many tokens of a prompt a step reads is decided in RowSharing::size_prompt_chunks() (row_sharing.h).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/step_batch.h"
#include "base/ids.h"
#include "kv/block_manager.h"
#include "sched/sequence.h"

namespace candor::sched {

// Where the cost of decoding alone is the measure, a step may take this much of it: below twice, so that what the model
// of costs does not see and other programs add still fits.
inline constexpr int64_t kStretchPercent = 175;

// The limits of a step: an input of plan(), set by the caller, which knows costs and memory; so plans can be replayed.
struct StepBudget {
  int32_t max_rows = 256;          // at least SchedulerOptions::max_running
  int32_t max_prefill_rows = 256;  // of them, for sequences that read more than one token
  int32_t max_out_rows = 0;        // logit rows, at least SchedulerOptions::max_running; 0 = exactly that
  // Further rows of logits: inside prompts (prompt logprobs and the like), and of drafts that max_out_rows has no room
  // for, which leave half of them to prompts; at least 1.
  int32_t max_shown_rows = 32;
  // Where sequences decode, prompts are read only as far as the step is planned to take at most this; 0 = about twice
  // what decoding alone takes.
  int64_t decode_step_ns = 0;
};

// Rows [first_row, first_row + n_rows) of the batch belong to `sequence`; the last n_draft of them are drafts. The
// logits of the last n_out are rows [out_row, out_row + n_out) of the step's result: none where the rows end before
// the sequence does, else 1 + n_draft. Before them come the "shown" rows, those inside the prompt whose results the
// request wants (prompt logprobs, a mean of hidden states): [shown_row, shown_row + n_shown), from token
// Sequence::shown_begin on.
struct PlannedSlice {
  const Sequence* sequence = nullptr;
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t n_draft = 0;
  int32_t out_row = -1;
  int32_t n_out = 0;
  int32_t shown_row = -1;
  int32_t n_shown = 0;
};

// Of one sequence in a step.
struct RowShare {
  int32_t n_rows = 0;   // of known tokens
  int32_t n_draft = 0;  // behind them
};

class StepPlan {
 public:
  static constexpr int32_t kAxes = 3;

  // Room for so many sequences, of so many blocks each, and for so many saved states in all.
  void reserve(size_t n_sequences, size_t n_blocks, size_t n_states);
  // To fill it: what the one before computed is gone, but for copies; then sequence by sequence; then their blocks.
  void clear();
  void append(const Sequence& sequence, RowShare share);
  void append_blocks();
  // Behind the last sequence.
  void append_axes();

 private:
  void append_images(const Sequence& sequence, const PlannedSlice& slice);

 public:
  std::vector<PlannedSlice> slices{};
  std::vector<kv::BlockCopy> copies{};  // to be done, in order, before the step
  int32_t n_prefill_rows = 0;           // rows of sequences that read more than one token
  int32_t n_draft_rows = 0;
  int32_t n_shown_rows = 0;
  int32_t n_preempted = 0;
  int64_t expected_ns = 0;  // by the cost model

  bool is_empty() const { return slices.empty(); }
  backend::StepBatch batch() const {
    return {.tokens = tokens,
            .positions = positions,
            .seqs = seqs,
            .block_table = block_table,
            .max_blocks = max_blocks,
            .out_rows = out_rows,
            .saves = saves,
            .groups = groups,
            .vector_rows = vector_rows,
            .axes = axes,
            .n_axes = axes.empty() ? 0 : kAxes,
            .uses = uses};
  }
  bool sees_ahead = false;  // each slice is one group

  // Rows that begin with a vector, and whose it is: row `row` of an image of that sequence. StepBatch::vector_rows, and
  // StepBatch::vectors by whoever has the images.
  struct ImageRow {
    SequenceId sequence = 0;
    int32_t image = 0;  // of Sequence::images
    int32_t row = 0;
  };
  std::vector<ImageRow> image_rows{};

  // The arrays of batch().
  std::vector<TokenId> tokens{};
  std::vector<int32_t> positions{};
  std::vector<backend::SeqSlice> seqs{};
  std::vector<BlockId> block_table{};
  std::vector<int32_t> out_rows{};
  std::vector<backend::StateSave> saves{};
  std::vector<backend::VisibleGroup> groups{};
  std::vector<int32_t> vector_rows{};
  std::vector<int32_t> axes{};  // empty where no sequence has images in grids
  std::vector<backend::AdapterUse> uses{};
  int32_t max_blocks = 0;
};

// What came of one slice that has logits: the sequence goes on with `tokens`, the accepted ones of its draft first and
// then one that was chosen; with no token it pauses. Or it ends.
struct Outcome {
  SequenceId sequence = 0;
  std::span<const TokenId> tokens{};  // borrowed for the call
  bool is_finished = false;
};

}  // namespace candor::sched
