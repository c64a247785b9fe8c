#pragma once
// Products of a few rows (few_rows.h) with blocks of 32. A warp's turn is some of them. What a block adds to a sum is
// fma(d * dx, f32(S), sum), and with minima fma(m * dx, f32(sum of x), .) behind it.
// Order: docs/numerics.md, "Products with block-quantised weights".

#include "backend/cuda/kernels/block_units.h"
#include "backend/cuda/kernels/few_rows.h"

namespace candor::backend::cuda {

// The blocks of a warp's turn, fewer at a row's end.
template <class Block>
struct TurnBlocks {
  using Unit = BlockUnit<Block>;
  static constexpr int kBlocks = blocks_of_turn(Unit::kHasMin);
  static constexpr int kParts = kUnit / 32 / kBlocks;  // of a unit

  BlockCodes<Block, kBlocks> codes;
  BlockScales<Block> scales[kBlocks];
  int32_t first_block = 0;
  int n_blocks = 0;

  // Part i of the panel.
  CANDOR_DEVICE void load(const uint8_t* panel, int32_t n_in, int32_t i) {
    first_block = kBlocks * i;
    const int n_left = n_in / 32 - i / kParts * (kUnit / 32);
    const int of_unit = n_left < kUnit / 32 ? n_left : kUnit / 32;
    const int first = i % kParts * kBlocks;
    const uint8_t* unit = panel + i / kParts * Unit::kBytes;
    n_blocks = of_unit - first < kBlocks ? of_unit - first : kBlocks;
    codes.load(unit + Unit::kHeaderOfBlock * of_unit, 32 * of_unit, first, n_blocks);
    CANDOR_UNROLL
    for (int b = 0; b < kBlocks; ++b) {
      if (b < n_blocks) scales[b].load(unit, of_unit, first + b);
    }
  }
};

struct alignas(8) FloatPair {
  float x, y;
};

// Terms of two turns: those of one are added while the next ones are found.
template <bool has_min>
struct BlockTerms {
  static constexpr int kBlocks = blocks_of_turn(has_min);
  static constexpr int kTurnBlocks = kBlocks * kFewWarps;

  Shared<FloatPair> pairs;  // [2][kTurnBlocks][kTileResults] d * dx and f32(S)
  Shared<float> minima;     // likewise m * dx

  CANDOR_DEVICE BlockTerms()
      : pairs(shared<FloatPair>(0)), minima(shared<float>(2 * kTurnBlocks * kTileResults * sizeof(FloatPair))) {}

  // block: of the turn's.
  CANDOR_DEVICE static size_t at(const Turn& turn, int32_t block) {
    return static_cast<size_t>((turn.number % 2 * kTurnBlocks + block) * kTileResults);
  }
};

// Leaves the terms of a tile's rows with block b of a warp's turn. scales: of a lane's two rows.
template <class Block>
CANDOR_DEVICE void leave_terms(const TurnBlocks<Block>& blocks, int b, const int32_t (&sums)[4],
                               const float (&scales)[2], size_t at) {
  const BlockTerms<Block::kPacked.has_min> terms;
  CANDOR_UNROLL
  for (size_t j = 0; j < 4; ++j) {
    const auto output = static_cast<int>(j / 2);
    terms.pairs[at + 32 * j] = FloatPair{mul_rn(blocks.scales[b].d(output), scales[j % 2]), to_float_rn(sums[j])};
    if constexpr (Block::kPacked.has_min) {
      terms.minima[at + 32 * j] = mul_rn(blocks.scales[b].min(output), scales[j % 2]);
    }
  }
}

// Of all blocks of a warp's turn.
template <class Block>
CANDOR_DEVICE void find_block_terms(const ProductPlace& place, const TurnBlocks<Block>& blocks, const Turn& turn) {
  using Terms = BlockTerms<Block::kPacked.has_min>;
  const LaneRow lane_row(place, turn.tile);
  const float* scales[2];
  CANDOR_UNROLL
  for (int32_t r = 0; r < 2; ++r) {
    const uint8_t* row = place.row(kTileRows * turn.tile + 2 * static_cast<int32_t>(lane_quarter()) + r);
    scales[r] = reinterpret_cast<const float*>(row + place.args.scales_at) + blocks.first_block;
  }
  const size_t at = Terms::at(turn, Terms::kBlocks * static_cast<int32_t>(warp())) + lane();
  CANDOR_UNROLL
  for (int b = 0; b < Terms::kBlocks; ++b) {
    if (b < blocks.n_blocks) {
      uint32_t a[4];
      uint32_t x[2];
      int32_t sums[4] = {};
      blocks.codes.weights(b, a);
      lane_row.codes(32 * (blocks.first_block + b), x);
      mma_s8(sums, a, x);
      leave_terms(blocks, b, sums, {scales[0][b], scales[1][b]}, at + static_cast<size_t>(b * kTileResults));
    }
  }
}

// Adds n blocks of a turn, all that it has where is_full, to this thread's result. row_sums: of these blocks.
template <bool has_min, bool is_full>
CANDOR_DEVICE float add_blocks(const Turn& turn, int32_t n, const int16_t* row_sums, float sum) {
  using Terms = BlockTerms<has_min>;
  const Terms terms;
  const size_t at = Terms::at(turn, 0) + thread();
  CANDOR_UNROLL
  for (int32_t i = 0; i < Terms::kTurnBlocks; ++i) {
    if (is_full || i < n) {
      const FloatPair pair = terms.pairs[at + static_cast<size_t>(i * kTileResults)];
      sum = fma_rn(pair.x, pair.y, sum);
      if constexpr (has_min) {
        sum = fma_rn(terms.minima[at + static_cast<size_t>(i * kTileResults)], to_float_rn(row_sums[i]), sum);
      }
    }
  }
  return sum;
}

template <bool has_min>
CANDOR_DEVICE void add_block_terms(const ProductPlace& place, const Turn& turn, const TileSums& sums) {
  using Terms = BlockTerms<has_min>;
  const AddedRow row(place, turn.tile);
  if (!row.is_there) return;
  const int32_t first = Terms::kBlocks * turn.first;
  const int32_t n = place.args.n_in / 32 - first;
  const auto* row_sums = reinterpret_cast<const int16_t*>(row.at + place.args.sums_at) + first;
  const float sum = sums.sums[TileSums::at(turn.tile)];
  sums.sums[TileSums::at(turn.tile)] = n >= Terms::kTurnBlocks ? add_blocks<has_min, true>(turn, n, row_sums, sum)
                                                               : add_blocks<has_min, false>(turn, n, row_sums, sum);
}

template <class Block>
CANDOR_DEVICE void multiply_few_blocks(const ProductArgs& args) {
  constexpr bool kHasMin = Block::kPacked.has_min;
  constexpr int32_t kDepth = 32 * blocks_of_turn(kHasMin);
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const TileSums sums(2 * kFewWarps * block_terms_bytes(kHasMin));
  sums.clear(place);
  const int32_t n_parts = (args.n_in + kDepth - 1) / kDepth;
  Turn turn{};
  for (int32_t first = 0; first < n_parts; first += kFewWarps) {
    turn.begin(first, n_parts);
    const int32_t i = first + static_cast<int32_t>(warp());
    TurnBlocks<Block> blocks;
    if (i < n_parts) blocks.load(place.panel, args.n_in, i);
    for (turn.tile = 0; turn.tile < tiles_of(place); ++turn.tile, ++turn.number) {
      if (i < n_parts) find_block_terms(place, blocks, turn);
      sync_block();
      add_block_terms<kHasMin>(place, turn, sums);
    }
  }
  sums.store(place);
}

}  // namespace candor::backend::cuda
