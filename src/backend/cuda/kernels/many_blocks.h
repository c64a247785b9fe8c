#pragma once
// Products of many rows (many_rows.h) with blocks of 32.

#include "backend/cuda/kernels/block_units.h"
#include "backend/cuda/kernels/many_rows.h"

namespace candor::backend::cuda {

template <class Block>
struct ManyBlockSums {
  using Unit = BlockUnit<Block>;
  using Layout = ManyBlocksLayout<Unit::kHasMin, Unit::kBytes>;
  static constexpr int64_t kFirstUnitAt = 0;
  static CANDOR_DEVICE int32_t depth_of(int32_t n_in) { return n_in; }
  static CANDOR_DEVICE int32_t unit_bytes(int32_t n_k) { return Layout::kUnitBytes / (kUnit / 32) * (n_k / 32); }
  static CANDOR_DEVICE int32_t scales_at(int32_t u) { return Layout::kScaleBytes * u; }

  float sums[kManyTiles][4] = {};

  template <bool has_all_tiles>
  CANDOR_DEVICE void add(const ManyStage& stage) {
    const uint8_t* bytes = stage.unit_bytes<Layout>();
    for (int32_t b = 0; b < stage.n_k / 32; ++b) {
      BlockCodes<Block, 1> codes;
      codes.load(bytes + Unit::kHeaderOfBlock * (stage.n_k / 32), stage.n_k, b);
      BlockScales<Block> scales;
      scales.load(bytes, stage.n_k / 32, b);
      uint32_t a[4];
      codes.weights(0, a);
      CANDOR_UNROLL
      for (int32_t tile = 0; tile < kManyTiles; ++tile) {
        if (has_all_tiles || tile < stage.n_tiles) add_block_of_tile(stage, scales, b, a, tile);
      }
    }
  }
  CANDOR_DEVICE float result(int32_t tile, int32_t i, const ProductPlace&) const { return sums[tile][i]; }

 private:
  CANDOR_DEVICE void add_block_of_tile(const ManyStage& stage, const BlockScales<Block>& scales, int32_t b,
                                       const uint32_t (&a)[4], int32_t tile) {
    uint32_t x[2];
    int32_t products[4] = {};
    stage.codes(tile, b, x);
    mma_s8(products, a, x);
    CANDOR_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t row = ManyStage::row_of_result(tile, i);
      const float dx = stage.at<float>(Layout::kScalesAt + Layout::kScaleStride * row + 4 * b);
      sums[tile][i] = fma_rn(mul_rn(scales.d(i / 2), dx), to_float_rn(products[i]), sums[tile][i]);
      if constexpr (Unit::kHasMin) {
        const int16_t row_sum = stage.at<int16_t>(Layout::kSumsAt + Layout::kSumBytes * row + 2 * b);
        sums[tile][i] = fma_rn(mul_rn(scales.min(i / 2), dx), to_float_rn(row_sum), sums[tile][i]);
      }
    }
  }
};

}  // namespace candor::backend::cuda
