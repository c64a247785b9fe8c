#pragma once
// Products of a few rows (few_rows.h) with blocks of 32. A warp's turn is 64 k. What a block adds to a sum is
// fma(d * dx, f32(S), sum), and with minima fma(m * dx, f32(sum of x), .) behind it.
// Order: docs/numerics.md, "Products with block-quantised weights".

#include "backend/cuda/kernels/block_units.h"
#include "backend/cuda/kernels/few_rows.h"

namespace candor::backend::cuda {

// The 64 k (or 32, at a row's end) that begin at a multiple of 64.
template <class Block>
struct BlockPair {
  using Unit = BlockUnit<Block>;
  static constexpr int kPairs = kUnit / 64;  // of a unit

  BlockCodes<Block, kBlocksOfTurn> codes;
  BlockScales<Block> scales[kBlocksOfTurn];
  int32_t first_block = 0;
  int n_blocks = 0;

  // Pair i of the panel's.
  CANDOR_DEVICE void load(const uint8_t* panel, int32_t n_in, int32_t i) {
    first_block = kBlocksOfTurn * i;
    const int32_t unit_k = i / kPairs * kUnit;
    const int n_k = n_in - unit_k < kUnit ? n_in - unit_k : kUnit;
    const int first = i % kPairs * kBlocksOfTurn;
    const uint8_t* unit = panel + i / kPairs * Unit::kBytes;
    n_blocks = n_k / 32 - first < kBlocksOfTurn ? n_k / 32 - first : kBlocksOfTurn;
    codes.load(unit + Unit::kHeaderOfBlock * (n_k / 32), n_k, first, n_blocks);
    CANDOR_UNROLL
    for (int b = 0; b < kBlocksOfTurn; ++b) {
      if (b < n_blocks) scales[b].load(unit, n_k / 32, first + b);
    }
  }
};

// Leaves the terms of a tile's rows with block b of a pair.
template <class Block>
CANDOR_DEVICE void leave_block_terms(const ProductPlace& place, const BlockPair<Block>& pair, int b,
                                     const FewSums& shared_sums, const Turn& turn) {
  constexpr int32_t kTerms = terms_of_block(Block::kPacked.has_min);
  const int32_t block = pair.first_block + b;
  int32_t sums[4] = {};
  uint32_t a[4];
  uint32_t x[2];
  pair.codes.weights(b, a);
  LaneRow(place, turn.tile).codes(int64_t{32} * block, x);
  mma_s8(sums, a, x);
  float products[4];
  float numbers[4];
  float minima[4];
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int32_t row = kTileRows * turn.tile + 2 * static_cast<int32_t>(lane_quarter()) + j % 2;
    const uint8_t* of_row = place.x + (row < place.n_rows ? row : 0) * place.args.row_bytes;
    const float dx = reinterpret_cast<const float*>(of_row + place.args.scales_at)[block];
    products[j] = mul_rn(pair.scales[b].d(j / 2), dx);
    numbers[j] = to_float_rn(sums[j]);
    if constexpr (Block::kPacked.has_min) minima[j] = mul_rn(pair.scales[b].min(j / 2), dx);
  }
  shared_sums.leave(turn, kTerms * b, products);
  shared_sums.leave(turn, kTerms * b + 1, numbers);
  if constexpr (Block::kPacked.has_min) shared_sums.leave(turn, kTerms * b + 2, minima);
}

// Adds the terms of a turn, of pairs of blocks, to this thread's result. n_blocks: of a row.
template <bool has_min>
CANDOR_DEVICE void add_block_terms(const ProductPlace& place, const FewSums& shared_sums, const Turn& turn,
                                   int32_t n_blocks) {
  const AddedRow row(place, turn.tile);
  if (!row.is_there) return;
  constexpr int32_t kTerms = terms_of_block(has_min);
  const int32_t first = kBlocksOfTurn * turn.first;
  const int32_t end = kBlocksOfTurn * turn.end < n_blocks ? kBlocksOfTurn * turn.end : n_blocks;
  const auto* row_sums = reinterpret_cast<const int16_t*>(row.at + row.args.sums_at);
  float sum = shared_sums.sums[shared_sums.tile_at(turn.tile)];
  for (int32_t block = first; block < end; ++block) {
    const int32_t of_warp = (block - first) / kBlocksOfTurn;
    const int32_t term = kTerms * ((block - first) % kBlocksOfTurn);
    sum = fma_rn(shared_sums.take(turn, of_warp, term), shared_sums.take(turn, of_warp, term + 1), sum);
    if constexpr (has_min) sum = fma_rn(shared_sums.take(turn, of_warp, term + 2), to_float_rn(row_sums[block]), sum);
  }
  shared_sums.sums[shared_sums.tile_at(turn.tile)] = sum;
}

template <class Block>
CANDOR_DEVICE void multiply_few_blocks(const ProductArgs& args) {
  constexpr bool kHasMin = Block::kPacked.has_min;
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const FewSums shared_sums(kBlocksOfTurn * terms_of_block(kHasMin));
  const int32_t n_tiles = tiles_of(place);
  shared_sums.clear(n_tiles);
  const int32_t n_blocks = args.n_in / 32;
  const int32_t n_pairs = (n_blocks + kBlocksOfTurn - 1) / kBlocksOfTurn;
  Turn turn{};
  for (; turn.first < n_pairs; turn.first += kFewWarps) {
    const int32_t i = turn.first + static_cast<int32_t>(warp());
    turn.end = n_pairs - turn.first < kFewWarps ? n_pairs : turn.first + kFewWarps;
    BlockPair<Block> pair;
    if (i < n_pairs) pair.load(place.panel, args.n_in, i);
    for (turn.tile = 0; turn.tile < n_tiles; ++turn.tile, ++turn.number) {
      CANDOR_UNROLL
      for (int b = 0; b < kBlocksOfTurn; ++b) {
        if (b < pair.n_blocks) leave_block_terms(place, pair, b, shared_sums, turn);
      }
      sync_block();
      add_block_terms<kHasMin>(place, shared_sums, turn, n_blocks);
    }
  }
  store_sums(place, shared_sums);
}

}  // namespace candor::backend::cuda
