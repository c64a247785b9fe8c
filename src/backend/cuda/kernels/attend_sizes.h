#pragma once
// Sizes of attention's work that a launch and its kernel must agree on. For both compilers.

#include <cstddef>
#include <cstdint>

#include "kernels/attend.h"

namespace candor::backend::cuda::attention {

using kernels::kKeyTile;
using kernels::kPageTokens;
using kernels::kSplitTokens;
inline constexpr int32_t kTilePages = kKeyTile / kPageTokens;

// Of keys and values in shared memory (attend_stages.h). per: dims (tokens) of a row.
inline constexpr int32_t kStageDims = 32;   // of keys
inline constexpr int32_t kChunkDims = 128;  // of values
inline constexpr int32_t kRowWords = 16;
inline constexpr int32_t kPieces = 8;
constexpr int32_t piece_words(int32_t per) {
  return (kStageDims / per + 1) * kRowWords;
}
constexpr int32_t stage_words(int32_t per) {
  return kPieces * piece_words(per);
}

constexpr int32_t padded_dim(int32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}
constexpr int32_t up_to(int32_t n, int32_t step) {
  return (n + step - 1) / step;
}
constexpr int32_t key_stages(int32_t head_dim) {
  return up_to(padded_dim(head_dim), kStageDims);
}
constexpr int32_t value_chunks(int32_t value_dim) {
  return up_to(value_dim, kChunkDims);
}
// Of stages of values that no head fills.
constexpr int32_t value_stage_words(int32_t head_dim, int32_t per) {
  const int32_t dp = padded_dim(head_dim);
  return (dp < kChunkDims ? dp / 16 : kPieces) * piece_words(per);
}

// The same of codes of int8: two rows of 16 bytes have pairs of dims (tokens) of 16 tokens (dims), and scales of 4
// times 32 tokens stand behind the pieces.
inline constexpr int32_t kCodeRowWords = 4;
inline constexpr int32_t kCodePieceWords = (kStageDims + 2) * kCodeRowWords;
inline constexpr int32_t kCodeScalesAt = kPieces * kCodePieceWords;
inline constexpr int32_t kCodeStageWords = kCodeScalesAt + 4 * kRowWords;

// Floats from one pair of tokens to the next among n queries' weights: 4 more than are used, for the banks.
constexpr int32_t weight_stride(int32_t n) {
  return 2 * n + 4;
}

// The same from one pair of dims to the next among n queries.
constexpr int32_t query_stride(int32_t n) {
  return 2 * n + 4;
}

// Dims under one scale of codes, which a stage of keys has; those of a chunk of values.
inline constexpr int32_t kBlockDims = kernels::kKvScaleDims;
inline constexpr int32_t kChunkBlocks = kChunkDims / kBlockDims;
static_assert(kBlockDims == kStageDims);
constexpr int32_t dim_blocks(int32_t n_dims) {
  return up_to(n_dims, kBlockDims);
}

// What n queries multiply the codes of a tile's tokens and a block with: pairs of int16, [pair of tokens][n], then each
// query's factor.
inline constexpr int32_t kTilePairs = kKeyTile / 2;
constexpr int32_t factors_word(int32_t n) {
  return kTilePairs * n;
}
constexpr int32_t weight_words(int32_t n) {
  return up_to(factors_word(n) + n, 4) * 4;
}
// The same of dims: [pair of dims][n], then the scales [block][n].
constexpr int32_t query_words(int32_t head_dim, int32_t n) {
  return (padded_dim(head_dim) / 2 + key_stages(head_dim)) * n;
}

// Threads that copy 16 rows of 64 bytes; a block has a multiple of them.
inline constexpr int32_t kUnitThreads = 64;

// attend_tiles: queries of a warp, and stages of its ring.
inline constexpr int32_t kWarpQueries = 8;
inline constexpr int32_t kRingStages = 3;
inline constexpr int32_t kWarpWeights = kKeyTile / 2 * weight_stride(kWarpQueries);
inline constexpr int32_t kMostWarps = 8;

// attend_few: most key tiles at a time.
inline constexpr int32_t kMostGroupTiles = 4;

// What a block knows of a query: head, position, seen tokens.
inline constexpr int32_t kPlaceWords = 4;

}  // namespace candor::backend::cuda::attention
