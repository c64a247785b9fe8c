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
    row.codes(kUnit * i + 32 * b, x);
    add_block(unit, b, a, x, sums);
  }
  if constexpr (Unit::kHasMin) add_minima(unit.minima, row.sums(i), minima);
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) terms[j] = unit_term(unit, j / 2, sums[j], minima[j]);
}

// A turn's terms, [2][kFewWarps][kTileResults]: those of one turn are added while the next ones are found.
CANDOR_DEVICE size_t unit_term_at(const Turn& turn, int32_t of_warp) {
  return static_cast<size_t>((turn.number % 2 * kFewWarps + of_warp) * kTileResults);
}

// Adds the terms of a turn to this thread's result.
CANDOR_DEVICE void add_unit_terms(const ProductPlace& place, const Turn& turn, Shared<float> terms,
                                  const TileSums& sums) {
  const AddedRow row(place, turn.tile);
  if (!row.is_there) return;
  const float* scales = row.scales + turn.first;
  const size_t first = unit_term_at(turn, 0) + thread();
  float dx[kFewWarps];
  float term[kFewWarps];
  CANDOR_UNROLL
  for (int32_t w = 0; w < kFewWarps; ++w) {
    if (turn.first + w < turn.end) {
      dx[w] = scales[w];
      term[w] = terms[first + static_cast<size_t>(w * kTileResults)];
    }
  }
  float sum = sums.sums[TileSums::at(turn.tile)];
  CANDOR_UNROLL
  for (int32_t w = 0; w < kFewWarps; ++w) {
    if (turn.first + w < turn.end) sum = fma_rn(dx[w], term[w], sum);
  }
  sums.sums[TileSums::at(turn.tile)] = sum;
}

template <class Unit>
CANDOR_DEVICE void multiply_few_units(const ProductArgs& args) {
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const Shared<float> all_terms = shared<float>(0);
  const TileSums sums(2 * kFewWarps * kUnitTermsBytes);
  sums.clear(place);
  const int32_t n_units = args.n_in / kUnit;
  Turn turn{};
  for (int32_t first = 0; first < n_units; first += kFewWarps) {
    turn.begin(first, n_units);
    const int32_t i = first + static_cast<int32_t>(warp());
    Unit unit;
    if (i < n_units) unit.load(place.panel + i * Unit::kBytes);
    for (turn.tile = 0; turn.tile < tiles_of(place); ++turn.tile, ++turn.number) {
      if (i < n_units) {
        float terms[4];
        find_unit_terms(LaneRow(place, turn.tile), unit, i, terms);
        const size_t at = unit_term_at(turn, static_cast<int32_t>(warp())) + lane();
        CANDOR_UNROLL
        for (size_t j = 0; j < 4; ++j) all_terms[at + 32 * j] = terms[j];
      }
      sync_block();
      add_unit_terms(place, turn, all_terms, sums);
    }
  }
  sums.store(place);
}

}  // namespace candor::backend::cuda
