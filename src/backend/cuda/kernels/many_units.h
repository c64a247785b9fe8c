#pragma once
// Products of many rows (many_rows.h) with super-blocks: each unit's integers, and then what they add to a sum.

#include "backend/cuda/kernels/many_rows.h"
#include "backend/cuda/kernels/super_units.h"

namespace candor::backend::cuda {

template <class Unit>
struct ManyUnitSums {
  using Layout = ManyUnitsLayout<Unit::kHasMin, Unit::kBytes>;
  static constexpr int64_t kFirstUnitAt = 0;
  static CANDOR_DEVICE int32_t depth_of(int32_t n_in) { return n_in; }
  static CANDOR_DEVICE int32_t unit_bytes(int32_t) { return Layout::kUnitBytes; }
  static CANDOR_DEVICE int32_t scales_at(int32_t u) { return Layout::kScaleBytes * (u / 4); }

  float sums[kManyTiles][4] = {};

  template <bool has_all_tiles>
  CANDOR_DEVICE void add(const ManyStage& stage) {
    Unit unit;
    unit.load(stage.unit_bytes<Layout>());
    int32_t products[kManyTiles][4] = {};
    CANDOR_UNROLL
    for (int b = 0; b < kBlocksOfUnit; ++b) {
      uint32_t a[4];
      unit.weights(b, a);
      CANDOR_UNROLL
      for (int32_t tile = 0; tile < kManyTiles; ++tile) {
        if (!has_all_tiles && tile >= stage.n_tiles) break;
        uint32_t x[2];
        stage.codes(tile, b, x);
        add_block(unit, b, a, x, products[tile]);
      }
    }
    CANDOR_UNROLL
    for (int32_t tile = 0; tile < kManyTiles; ++tile) {
      if (has_all_tiles || tile < stage.n_tiles) add_terms(stage, unit, tile, products[tile]);
    }
  }
  CANDOR_DEVICE float result(int32_t tile, int32_t i, const ProductPlace&) const { return sums[tile][i]; }

 private:
  CANDOR_DEVICE void add_terms(const ManyStage& stage, const Unit& unit, int32_t tile, const int32_t (&products)[4]) {
    int32_t minima[4] = {};
    if constexpr (Unit::kHasMin) {
      const int32_t of_row = Layout::kSumBytes * ManyStage::row_of_lane(tile);
      const Uint2 row_sums = stage.at<Uint2>(Layout::kSumsAt + of_row + 8 * static_cast<int32_t>(lane_quarter()));
      add_minima(unit.minima, row_sums, minima);
    }
    CANDOR_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t of_row = Layout::kScaleStride * ManyStage::row_of_result(tile, i);
      const float dx = stage.at<float>(Layout::kScalesAt + of_row + 4 * (stage.unit % 4));
      sums[tile][i] = fma_rn(dx, unit_term(unit, i / 2, products[i], minima[i]), sums[tile][i]);
    }
  }
};

}  // namespace candor::backend::cuda
