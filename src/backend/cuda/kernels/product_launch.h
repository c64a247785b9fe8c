#pragma once
// How blocks of threads divide a matrix product: what the kernels and those who launch them must agree on.

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weight.h"
#include "tensor/quant/block_format.h"

namespace candor::backend::cuda {

// Few rows: a block takes a panel (x) and some rows (y) of a run (z); its warps take turns along k.
inline constexpr int32_t kFewWarps = 8;
inline constexpr uint32_t kFewThreads = 32 * kFewWarps;
inline constexpr int32_t kMostFewRows = 32;

// Integers by mma_s8: tiles of 8 rows by the panel's 16 outputs.
inline constexpr int32_t kTileRows = 8;
inline constexpr int32_t kMostFewTiles = kMostFewRows / kTileRows;
inline constexpr int32_t kTileResults = kernels::kPanelRows * kTileRows;
inline constexpr size_t kFewSumsBytes = sizeof(float) * static_cast<size_t>(kMostFewTiles * kTileResults);
constexpr size_t few_shared_bytes(size_t terms_bytes) {
  return 2 * kFewWarps * terms_bytes + kFewSumsBytes;
}
// What a warp's turn leaves: of a super-block one number for each result; of some 32-blocks d * dx and f32(S), and with
// minima m * dx.
inline constexpr size_t kUnitTermsBytes = sizeof(float) * kTileResults;
constexpr int32_t blocks_of_turn(bool has_min) {
  return has_min ? 2 : 4;
}
constexpr size_t block_terms_bytes(bool has_min) {
  return sizeof(float) * static_cast<size_t>((has_min ? 3 : 2) * blocks_of_turn(has_min) * kTileResults);
}

// One scale a row: each warp's integers.
inline constexpr size_t kScaledSharedBytes = sizeof(int32_t) * kFewWarps * kMostFewTiles * kTileResults;

// Chains over even and odd k: a quarter of a warp's lanes takes 32 k of all outputs, for two rows at a time.
inline constexpr int32_t kSliceDepth = 32;
inline constexpr int32_t kSlicesOfTurn = 8 * kFewWarps;
inline constexpr int32_t kSliceRows = 2;
inline constexpr int32_t kSliceRowStride = (kSlicesOfTurn + 1) * kernels::kPanelRows;  // of the sums of a turn
inline constexpr size_t kSliceTermsBytes = sizeof(float) * 2 * kSliceRows * kSliceRowStride;
inline constexpr size_t kSliceSharedBytes =
    kSliceTermsBytes + sizeof(float) * static_cast<size_t>(kMostFewRows * kernels::kPanelRows);

// One chain over k: a thread an output and row; the panel comes through shared memory in stages.
inline constexpr int32_t kChainRows = static_cast<int32_t>(kFewThreads) / kernels::kPanelRows;
inline constexpr int32_t kChainStages = 4;
inline constexpr int32_t kChainStageBytes = 16 * static_cast<int32_t>(kFewThreads);
inline constexpr size_t kChainSharedBytes = size_t{kChainStages} * kChainStageBytes;

// Many rows: a block takes 64 rows (x) and four panels (y), one a warp, which walks all of k; 256 k of both are in
// shared memory while the next are on their way.
inline constexpr int32_t kManyWarps = 4;
inline constexpr uint32_t kManyThreads = 32 * kManyWarps;
inline constexpr int32_t kManyRows = 64;
inline constexpr int32_t kManyTiles = kManyRows / kTileRows;
inline constexpr int32_t kManyStages = 2;
inline constexpr int32_t kCodesStride = kernels::kUnit + 32;  // of a row: rows of a tile lie in other banks

// What shared memory has of 256 k: codes of the rows, their sums, their scales, and units of the panels. sum_bytes,
// scale_bytes: of a row, multiples of 16, 0 where none are wanted; scale_stride: from row to row.
template <int32_t sum_bytes, int32_t scale_bytes, int32_t scale_stride, int64_t unit_bytes>
struct ManyLayout {
  static constexpr int32_t kSumBytes = sum_bytes;
  static constexpr int32_t kScaleBytes = scale_bytes;
  static constexpr int32_t kScaleStride = scale_stride;
  static constexpr auto kUnitBytes = static_cast<int32_t>(unit_bytes);
  static constexpr int32_t kSumsAt = kManyRows * kCodesStride;
  static constexpr int32_t kScalesAt = kSumsAt + kManyRows * sum_bytes;
  static constexpr int32_t kUnitsAt = kScalesAt + kManyRows * scale_stride;
  static constexpr int32_t kBytes = kUnitsAt + kManyWarps * kUnitBytes;
  static constexpr size_t kSharedBytes = size_t{kManyStages} * kBytes;
};
// A super-block has one scale, which comes with three that are not wanted.
template <bool has_min, int64_t unit_bytes>
using ManyUnitsLayout = ManyLayout<has_min ? 32 : 0, 16, 16, unit_bytes>;
template <bool has_min, int64_t unit_bytes>
using ManyBlocksLayout = ManyLayout<has_min ? 16 : 0, 32, 48, unit_bytes>;
using ManyScaledLayout = ManyLayout<0, 0, 0, kernels::kPanelRows * kernels::kUnit>;

// Many rows of floats: a block takes four panels (y) and some rows (x), a thread four outputs and some of these rows;
// slices of 32 k come through shared memory in stages.
inline constexpr int32_t kFloatStages = 3;
inline constexpr int32_t kFloatRowStride = kSliceDepth * 4 + 16;  // bytes of a row's slice; rows lie in other banks
inline constexpr int32_t kFloatRowGroups = static_cast<int32_t>(kManyThreads) / (kManyWarps * kernels::kPanelRows / 4);
// Rows of a thread: blocks of floats have one more sum for each result.
constexpr int32_t float_rows_of_thread(bool has_parts) {
  return has_parts ? 4 : 8;
}
constexpr int32_t float_rows_of_block(bool has_parts) {
  return kFloatRowGroups * float_rows_of_thread(has_parts);
}
// Of a panel: floats, pairs of bf16, codes with FP4's scales behind them.
constexpr int32_t slice_bytes(DType dtype) {
  constexpr int32_t kWeights = kernels::kPanelRows * kSliceDepth;
  if (dtype == DType::kF32) return 4 * kWeights;
  if (dtype == DType::kFP8) return kWeights;
  return dtype == DType::kFP4 ? kWeights / 2 + 2 * kernels::kPanelRows : 2 * kWeights;
}
constexpr int32_t float_panel_stride(int32_t bytes) {
  return bytes + 64;
}
constexpr int32_t float_stage_bytes(bool has_parts, int32_t of_slice) {
  return kFloatRowStride * float_rows_of_block(has_parts) + kManyWarps * float_panel_stride(of_slice);
}

}  // namespace candor::backend::cuda
