#pragma once
// How blocks of threads divide a matrix product: what the kernels and those who launch them must agree on.

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weight.h"
#include "tensor/quant/block_format.h"

namespace candor::backend::cuda {

// Few rows: a block takes a panel (x) and some rows (y) of a group (z); its warps take turns along k.
inline constexpr int32_t kFewWarps = 8;
inline constexpr uint32_t kFewThreads = 32 * kFewWarps;
inline constexpr int32_t kMostFewRows = 32;

// Integers by mma_s8: tiles of 8 rows by the panel's 16 outputs.
inline constexpr int32_t kTileRows = 8;
inline constexpr int32_t kMostFewTiles = kMostFewRows / kTileRows;
inline constexpr int32_t kTileResults = kernels::kPanelRows * kTileRows;
// Numbers that a warp's turn leaves for each result: of a super-block one, of each of two 32-blocks d * dx, f32(S) and,
// with minima, m * dx.
inline constexpr int32_t kBlocksOfTurn = 2;
constexpr int32_t terms_of_block(bool has_min) {
  return has_min ? 3 : 2;
}
constexpr int32_t terms_of_turn(const quant::PackedFormat& format) {
  return format.is_super ? 1 : kBlocksOfTurn * terms_of_block(format.has_min);
}
constexpr size_t few_terms_bytes(int32_t n_terms) {
  return sizeof(float) * static_cast<size_t>(2 * kFewWarps * n_terms * kTileResults);
}
constexpr size_t few_shared_bytes(int32_t n_terms) {
  return few_terms_bytes(n_terms) + sizeof(float) * static_cast<size_t>(kMostFewTiles * kTileResults);
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

}  // namespace candor::backend::cuda
