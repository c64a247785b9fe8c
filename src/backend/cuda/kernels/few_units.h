#pragma once
// Products of a few rows (few_rows.h) with super-blocks: a warp's turn is a unit of 256 k, whose term u is left for
// each output and row.

#include "backend/cuda/kernels/few_rows.h"
#include "backend/cuda/kernels/super_units.h"

namespace candor::backend::cuda {

// What unit i adds to the 16 outputs of a tile's rows.
template <class Unit>
CANDOR_DEVICE void find_unit_terms(const LaneRow& row, const Unit& unit, int32_t i, float (&terms)[4]) {
  int32_t sums[4] = {};
  int32_t minima[4] = {};
  CANDOR_UNROLL
  for (int b = 0; b < kBlocksOfUnit; ++b) {
    uint32_t a[4];
    uint32_t x[2];
    unit.weights(b, a);
    row.codes(int64_t{kUnit} * i + 32 * b, x);
    add_block(unit, b, a, x, sums);
  }
  if constexpr (Unit::kHasMin) add_minima(unit.minima, row.sums(i), minima);
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) terms[j] = unit_term(unit, j / 2, sums[j], minima[j]);
}

// Adds the terms of a turn to this thread's result.
CANDOR_DEVICE void add_unit_terms(const ProductPlace& place, const FewSums& shared_sums, const Turn& turn) {
  const AddedRow row(place, turn.tile);
  if (!row.is_there) return;
  float sum = shared_sums.sums[shared_sums.tile_at(turn.tile)];
  for (int32_t i = turn.first; i < turn.end; ++i) {
    sum = fma_rn(row.scale(i), shared_sums.take(turn, i - turn.first, 0), sum);
  }
  shared_sums.sums[shared_sums.tile_at(turn.tile)] = sum;
}

template <class Unit>
CANDOR_DEVICE void multiply_few_units(const ProductArgs& args) {
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const FewSums shared_sums(1);
  const int32_t n_tiles = tiles_of(place);
  shared_sums.clear(n_tiles);
  const int32_t n_units = args.n_in / kUnit;
  Turn turn{};
  for (; turn.first < n_units; turn.first += kFewWarps) {
    const int32_t i = turn.first + static_cast<int32_t>(warp());
    turn.end = n_units - turn.first < kFewWarps ? n_units : turn.first + kFewWarps;
    Unit unit;
    if (i < n_units) unit.load(place.panel + i * Unit::kBytes);
    for (turn.tile = 0; turn.tile < n_tiles; ++turn.tile, ++turn.number) {
      if (i < n_units) {
        float terms[4];
        find_unit_terms(LaneRow(place, turn.tile), unit, i, terms);
        shared_sums.leave(turn, 0, terms);
      }
      sync_block();
      add_unit_terms(place, shared_sums, turn);
    }
  }
  store_sums(place, shared_sums);
}

}  // namespace candor::backend::cuda
