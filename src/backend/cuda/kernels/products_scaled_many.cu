// Products of many rows with rows of one scale (W8A8): integers over all k.

#include "backend/cuda/kernels/many_rows.h"
#include "kernels/packed_format.h"

namespace candor::backend::cuda {

namespace {

struct ManyScaledSums {
  using Layout = ManyScaledLayout;
  static constexpr int64_t kFirstUnitAt = kernels::kScaledRowsHeader;
  static CANDOR_DEVICE int32_t depth_of(int32_t n_in) { return static_cast<int32_t>(kernels::scaled_rows_depth(n_in)); }
  static CANDOR_DEVICE int32_t unit_bytes(int32_t n_k) { return kPanelRows * n_k; }

  int32_t sums[kManyTiles][4] = {};

  template <bool has_all_tiles>
  CANDOR_DEVICE void add(const ManyStage& stage) {
    const uint8_t* bytes = stage.unit_bytes<Layout>();
    for (int32_t b = 0; b < stage.n_k / 32; ++b) {
      PlaneWords<8, 1> codes;
      codes.load(bytes + 512 * b);
      uint32_t a[4];
      CANDOR_UNROLL
      for (int i = 0; i < 4; ++i) a[i] = codes.fields(0, i / 2, i % 2) ^ 0x80808080u;
      CANDOR_UNROLL
      for (int32_t tile = 0; tile < kManyTiles; ++tile) {
        if (!has_all_tiles && tile >= stage.n_tiles) break;
        uint32_t x[2];
        stage.codes(tile, b, x);
        mma_s8(sums[tile], a, x);
      }
    }
  }
  CANDOR_DEVICE float result(int32_t tile, int32_t i, const ProductPlace& place) const {
    const uint8_t* row = place.row(ManyStage::row_of_result(tile, i));
    const float dx = *reinterpret_cast<const float*>(row + place.args.scales_at);
    const float d = reinterpret_cast<const float*>(place.panel)[ManyStage::output_of_result(i)];
    return mul_rn(dx, mul_rn(d, to_float_rn(sums[tile][i])));
  }
};

}  // namespace

CANDOR_BOUNDED_KERNEL(product_w8a8_many, ProductArgs, kManyThreads, 3) {
  multiply_many<ManyScaledSums>(args);
}

}  // namespace candor::backend::cuda
