#pragma once
// What one step of the engine computes: some tokens of each of some sequences, as plain arrays, borrowed for the
// duration of the step. There is no prefill and no decode: a slice is consecutive rows (tokens) of one sequence. n_rows
// == 1 is decode, n_rows == 256 a chunk of prefill, n_rows == 1 + k the verification of k draft tokens.

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace candor::backend {

// The rows of one sequence in this step. Row first_row + i stands at position n_past + i of the sequence.
struct SeqSlice {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t n_past = 0;  // tokens of this sequence already in the K/V store
  StateId state = kNoState;  // where the recurrent state behind them stands; kNoState: all zeros
};

// The recurrent state behind a row goes to a slot that no slice of the step begins from and no other save takes: a step
// never changes what it reads, so that it can be computed again.
struct StateSave {
  int32_t row = 0;
  StateId slot = kNoState;
};

// T rows, S sequences, B tokens in a K/V block.
struct StepBatch {
  std::span<const TokenId> tokens;       // [T]
  std::span<const int32_t> positions;    // [T]
  std::span<const SeqSlice> seqs;        // [S], ascending by first_row, covering [0, T) without gaps
  std::span<const BlockId> block_table;  // [S, max_blocks]; entry j of a sequence holds positions [j*B, (j+1)*B)
  int32_t max_blocks = 0;
  std::span<const int32_t> out_rows{};   // rows whose logits are wanted, ascending
  // For models with recurrent layers: ascending by row, at least one for the last row of each slice.
  std::span<const StateSave> saves{};

  int32_t n_rows() const { return static_cast<int32_t>(tokens.size()); }
  std::span<const BlockId> blocks_of(size_t seq) const {
    return block_table.subspan(seq * static_cast<size_t>(max_blocks), static_cast<size_t>(max_blocks));
  }
  std::span<const StateSave> saves_of(const SeqSlice& seq) const {
    const auto is_before = [](const StateSave& save, int32_t row) { return save.row < row; };
    const auto begin = std::lower_bound(saves.begin(), saves.end(), seq.first_row, is_before);
    return {begin, std::lower_bound(begin, saves.end(), seq.first_row + seq.n_rows, is_before)};
  }
};

}  // namespace candor::backend
