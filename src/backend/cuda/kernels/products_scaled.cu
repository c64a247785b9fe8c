// Products of rows with one scale (W8A8): integers over all k, which warps share, then y = dx * (d * f32(S)).

#include "backend/cuda/kernels/few_rows.h"
#include "kernels/packed_format.h"

namespace candor::backend::cuda {

namespace {

constexpr int kBlocksOfStep = 4;  // of 32 k, that a warp takes at once

// The sums of 32 kBlocksOfStep k and all tiles.
CANDOR_DEVICE void add_step(const ProductPlace& place, int32_t first_block, int32_t n_blocks,
                            int32_t (&sums)[kMostFewTiles][4]) {
  PlaneWords<8, kBlocksOfStep> codes;
  codes.load(place.panel + kernels::kScaledRowsHeader + 512 * first_block, n_blocks);
  CANDOR_UNROLL
  for (int32_t tile = 0; tile < kMostFewTiles; ++tile) {
    if (tile >= tiles_of(place)) return;
    const LaneRow row(place, tile);
    CANDOR_UNROLL
    for (int b = 0; b < kBlocksOfStep; ++b) {
      if (b >= n_blocks) break;
      uint32_t a[4];
      uint32_t x[2];
      CANDOR_UNROLL
      for (int i = 0; i < 4; ++i) a[i] = codes.fields(b, i / 2, i % 2) ^ 0x80808080u;
      row.codes(32 * (first_block + b), x);
      mma_s8(sums[tile], a, x);
    }
  }
}

CANDOR_DEVICE size_t sum_at(int32_t of_warp, int32_t tile) {
  return static_cast<size_t>((of_warp * kMostFewTiles + tile) * kTileResults);
}

CANDOR_DEVICE void store_scaled(const ProductPlace& place, Shared<int32_t> all, int32_t tile) {
  const AddedRow row(place, tile);
  if (!row.is_there) return;
  int32_t sum = 0;
  for (int32_t w = 0; w < kFewWarps; ++w) sum += all[sum_at(w, tile) + thread()];
  const float d = reinterpret_cast<const float*>(place.panel)[row.output];
  store_result(place, row.row, row.output, mul_rn(row.scales[0], mul_rn(d, to_float_rn(sum))));
}

}  // namespace

// k past n_in have activations 0.
CANDOR_BOUNDED_KERNEL(product_w8a8, ProductArgs, kFewThreads, 4) {
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const int32_t n_blocks = static_cast<int32_t>(kernels::scaled_rows_depth(args.n_in) / 32);
  int32_t sums[kMostFewTiles][4] = {};
  for (int32_t first = kBlocksOfStep * static_cast<int32_t>(warp()); first < n_blocks;
       first += kBlocksOfStep * kFewWarps) {
    add_step(place, first, n_blocks - first < kBlocksOfStep ? n_blocks - first : kBlocksOfStep, sums);
  }
  const Shared<int32_t> all = shared<int32_t>(0);
  CANDOR_UNROLL
  for (int32_t tile = 0; tile < kMostFewTiles; ++tile) {
    CANDOR_UNROLL
    for (size_t i = 0; i < 4; ++i) all[sum_at(static_cast<int32_t>(warp()), tile) + 32 * i + lane()] = sums[tile][i];
  }
  sync_block();
  for (int32_t tile = 0; tile < tiles_of(place); ++tile) store_scaled(place, all, tile);
}

}  // namespace candor::backend::cuda
