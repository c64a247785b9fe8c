#pragma once
// What one step of the engine computes: some tokens of each of some sequences, as plain arrays, borrowed for the
// duration of the step. There is no prefill and no decode: a slice is consecutive rows (tokens) of one sequence. n_rows
// == 1 is decode, n_rows == 256 a chunk of prefill, n_rows == 1 + k the verification of k draft tokens.
//
// A row is a token, seen by those behind it, unless the batch says otherwise: it may begin with a vector (vectors), see
// rows that come later (groups), stand at several positions (axes), and use an adapter (SeqSlice). Which of these a
// backend knows: BackendInfo::rows.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string_view>

#include "base/ids.h"

namespace candor::backend {

// The rows of one sequence in this step. Row first_row + i stands at position n_past + i of the sequence.
struct SeqSlice {
  int32_t first_row = 0;
  int32_t n_rows = 0;
  int32_t n_past = 0;        // tokens of this sequence already in the K/V store
  StateId state = kNoState;  // where the recurrent state behind them stands; kNoState: all zeros
  int32_t first_use = 0;     // of StepBatch::uses: the adapters of its rows, in the order in which they are added
  int32_t n_uses = 0;
  // Where the second of two texts begins, for models that tell them apart: tokens before it are of type 0, others of 1.
  int32_t second_text = std::numeric_limits<int32_t>::max();
};

// An adapter of a row, and how much of what it adds counts.
struct AdapterUse {
  AdapterId adapter = kNoAdapter;
  float scale = 1.0f;
  bool operator==(const AdapterUse&) const = default;
};

// The recurrent state behind a row goes to a slot that no slice of the step begins from and no other save takes: a step
// never changes what it reads, so that it can be computed again.
struct StateSave {
  int32_t row = 0;
  StateId slot = kNoState;
};

// Rows of one slice that all see one another (an image, a text that an encoder reads), and what every row sees.
struct VisibleGroup {
  int32_t first_row = 0;
  int32_t n_rows = 0;
};

// What rows can be besides tokens that see what came before them.
struct RowKinds {
  bool vectors = false;
  bool groups = false;
  bool axes = false;
  bool adapters = false;
  bool operator==(const RowKinds&) const = default;
};
// The first kind that is wanted and not known, as a reader names it; empty: all are known.
constexpr std::string_view missing_kind(const RowKinds& wanted, const RowKinds& known) {
  if (wanted.vectors && !known.vectors) return "rows that begin with a vector";
  if (wanted.groups && !known.groups) return "rows that see what comes later";
  if (wanted.axes && !known.axes) return "rows at several positions";
  if (wanted.adapters && !known.adapters) return "adapters";
  return {};
}

// T rows, S sequences, B tokens in a K/V block.
struct StepBatch {
  std::span<const TokenId> tokens;       // [T]
  std::span<const int32_t> positions;    // [T]
  std::span<const SeqSlice> seqs;        // [S], ascending by first_row, covering [0, T) without gaps
  std::span<const BlockId> block_table;  // [S, max_blocks]; entry j of a sequence holds positions [j*B, (j+1)*B)
  int32_t max_blocks = 0;
  std::span<const int32_t> out_rows{};  // rows whose logits are wanted, ascending
  // For models with recurrent layers: ascending by row, at least one for the last row of each slice.
  std::span<const StateSave> saves{};
  // Ascending; disjoint.
  std::span<const VisibleGroup> groups{};
  // Rows that begin with a vector in place of their token's (op::Embed), ascending, and the vectors: [vector_rows, D],
  // or wider where later blocks add more of it (op::AddVectors).
  std::span<const int32_t> vector_rows{};
  std::span<const float> vectors{};
  // [T, n_axes]: positions in time, height, width and so on, in place of `positions` where rotation wants them
  // (RopeSpec::axes, all below n_axes).
  std::span<const int32_t> axes{};
  int32_t n_axes = 0;
  std::span<const AdapterUse> uses{};

  int32_t n_rows() const { return static_cast<int32_t>(tokens.size()); }
  RowKinds kinds() const { return {!vector_rows.empty(), !groups.empty(), n_axes > 0, !uses.empty()}; }
  // The first group that ends behind a row: the row's own, or the next one; nullptr where there is none.
  const VisibleGroup* group_from(int32_t row) const {
    const auto ends_behind = [](int32_t of, const VisibleGroup& group) { return of < group.first_row + group.n_rows; };
    const auto at = std::upper_bound(groups.begin(), groups.end(), row, ends_behind);
    return at == groups.end() ? nullptr : &*at;
  }
  // Of a row; of one that has a vector `instead`, where that is a token.
  TokenId token_of(int32_t row, TokenId instead) const {
    const bool is_replaced = instead != kNoToken && std::ranges::binary_search(vector_rows, row);
    return is_replaced ? instead : tokens[static_cast<size_t>(row)];
  }
  // The group of a row, or nullptr.
  const VisibleGroup* group_of(int32_t row) const {
    const VisibleGroup* group = group_from(row);
    return group != nullptr && group->first_row <= row ? group : nullptr;
  }
  // A row's vector, or nullptr. Its first D numbers are what the row begins with.
  const float* vector_of(int32_t row) const {
    const auto at = std::lower_bound(vector_rows.begin(), vector_rows.end(), row);
    if (at == vector_rows.end() || *at != row) return nullptr;
    return vectors.data() + static_cast<size_t>(at - vector_rows.begin()) * (vectors.size() / vector_rows.size());
  }
  // 0 or 1.
  static int32_t type_of(const SeqSlice& seq, int32_t row) {
    return seq.n_past + row - seq.first_row < seq.second_text ? 0 : 1;
  }
  std::span<const AdapterUse> uses_of(const SeqSlice& seq) const {
    return uses.subspan(static_cast<size_t>(seq.first_use), static_cast<size_t>(seq.n_uses));
  }
  // The position that turns pair `pair` of a row. axes: RopeSpec::axes.
  int32_t position_of(size_t row, std::span<const uint8_t> pair_axes, size_t pair) const {
    if (n_axes == 0 || pair_axes.empty()) return positions[row];
    return axes[row * static_cast<size_t>(n_axes) + pair_axes[pair]];
  }
  const SeqSlice& slice_of(int32_t row) const {
    return *std::prev(std::ranges::upper_bound(seqs, row, {}, &SeqSlice::first_row));
  }
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
