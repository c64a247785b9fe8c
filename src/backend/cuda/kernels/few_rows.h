#pragma once
// Products of a few rows (decoding a token, a small batch): a block of threads takes a panel and up to kMostFewRows
// rows, and its warps take turns along k. A warp reads its k of the panel once, multiplies them with 8 rows after 8
// rows, and leaves what they add to each output in shared memory; then one thread an output and row adds it, k
// ascending. So all sums of floats are one chain, and only integers are split.

#include "backend/cuda/kernels/product_launch.h"
#include "backend/cuda/kernels/product_place.h"
#include "backend/cuda/kernels/unit_planes.h"

namespace candor::backend::cuda {

// Result c < kTileResults of a tile: as fragment c / 32 of lane c % 32.
struct TileResult {
  int32_t output;
  int32_t row;
};
CANDOR_DEVICE TileResult tile_result(uint32_t c) {
  const uint32_t i = c / 32;
  return {static_cast<int32_t>(c % 32 / 4 * 2 + i / 2), static_cast<int32_t>(c % 4 * 2 + i % 2)};
}

// The row of a tile of 8 whose activations this lane brings to mma_s8.
struct LaneRow {
  const ProductPlace& place;
  const uint8_t* at;

  CANDOR_DEVICE LaneRow(const ProductPlace& the_place, int32_t tile)
      : place(the_place), at(place.row(kTileRows * tile + static_cast<int32_t>(lane_group()))) {}

  // Codes 8 t to 8 t + 7 of the 32 from k on.
  CANDOR_DEVICE void codes(int32_t k, uint32_t (&x)[2]) const {
    const Uint2 eight = load8(at + k + 8 * lane_quarter());
    x[0] = eight.x;
    x[1] = eight.y;
  }
  // Sums 4 t to 4 t + 3 of unit i's sixteen.
  CANDOR_DEVICE Uint2 sums(int32_t i) const { return load8(at + place.args.sums_at + 32 * i + 8 * lane_quarter()); }
};

// The row and output whose sums this thread adds, if it does.
struct AddedRow {
  int32_t row;
  int32_t output;
  bool is_there;
  const uint8_t* at;
  const float* scales;

  CANDOR_DEVICE AddedRow(const ProductPlace& place, int32_t tile) {
    const TileResult result = tile_result(thread() % kTileResults);
    row = kTileRows * tile + result.row;
    output = result.output;
    is_there = thread() < kTileResults && row < place.n_rows;
    at = place.row(row);
    scales = reinterpret_cast<const float*>(at + place.args.scales_at);
  }
};

CANDOR_DEVICE int32_t tiles_of(const ProductPlace& place) {
  return (place.n_rows + kTileRows - 1) / kTileRows;
}

// A turn of all warps with one tile. Warp w of it has what follows from first + w on.
struct Turn {
  int32_t number;
  int32_t tile;
  int32_t first;
  int32_t end;

  // Begins anew at `from`, of n.
  CANDOR_DEVICE void begin(int32_t from, int32_t n) {
    first = from;
    end = n - from < kFewWarps ? n : from + kFewWarps;
  }
  CANDOR_DEVICE bool is_full() const { return end - first == kFewWarps; }
};

// The sums so far of each tile, in shared memory from some byte on: [tile][kTileResults], each its thread's own.
struct TileSums {
  Shared<float> sums;

  CANDOR_DEVICE explicit TileSums(size_t at) : sums(shared<float>(at)) {}

  CANDOR_DEVICE static size_t at(int32_t tile) {
    return static_cast<size_t>(tile * kTileResults) + thread() % kTileResults;
  }
  CANDOR_DEVICE void clear(const ProductPlace& place) const {
    if (thread() >= kTileResults) return;
    for (int32_t tile = 0; tile < tiles_of(place); ++tile) sums[at(tile)] = 0.0f;
  }
  CANDOR_DEVICE void store(const ProductPlace& place) const {
    if (thread() >= kTileResults) return;
    for (int32_t tile = 0; tile < tiles_of(place); ++tile) {
      const AddedRow row(place, tile);
      store_result(place, row.row, row.output, sums[at(tile)]);
    }
  }
};

}  // namespace candor::backend::cuda
