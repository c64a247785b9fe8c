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
  const ProductArgs& args;
  const uint8_t* at;
  bool is_there;

  CANDOR_DEVICE LaneRow(const ProductPlace& place, int32_t tile) : args(place.args) {
    const int32_t row = kTileRows * tile + static_cast<int32_t>(lane_group());
    is_there = row < place.n_rows;
    at = place.x + (is_there ? row : 0) * args.row_bytes;
  }

  // Codes 8 t to 8 t + 7 of the 32 from k on.
  CANDOR_DEVICE void codes(int64_t k, uint32_t (&x)[2]) const {
    const Uint2 eight = is_there ? load8(at + k + 8 * lane_quarter()) : Uint2{0, 0};
    x[0] = eight.x;
    x[1] = eight.y;
  }
  // Sums 4 t to 4 t + 3 of unit i's sixteen.
  CANDOR_DEVICE Uint2 sums(int32_t i) const {
    return is_there ? load8(at + args.sums_at + 32 * int64_t{i} + 8 * lane_quarter()) : Uint2{0, 0};
  }
};

// Of the thread that adds result c of a tile; a row that is none is not read.
struct AddedRow {
  const ProductArgs& args;
  const uint8_t* at;
  int32_t row;
  int32_t output;
  bool is_there;

  CANDOR_DEVICE AddedRow(const ProductPlace& place, int32_t tile) : args(place.args) {
    const TileResult result = tile_result(thread() % kTileResults);
    row = kTileRows * tile + result.row;
    output = result.output;
    is_there = thread() < kTileResults && row < place.n_rows;
    at = place.x + (is_there ? row : 0) * args.row_bytes;
  }
  CANDOR_DEVICE float scale(int32_t i) const { return reinterpret_cast<const float*>(at + args.scales_at)[i]; }
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
};

// What is in shared memory: the terms of one turn of all warps, twice, and the sums so far of each tile.
struct FewSums {
  Shared<float> terms;  // [2][kFewWarps][terms of a warp][kTileResults]
  Shared<float> sums;   // [tile][kTileResults], each its thread's own
  int32_t n_terms;      // of a warp

  CANDOR_DEVICE explicit FewSums(int32_t n)
      : terms(shared<float>(0)), sums(shared<float>(few_terms_bytes(n))), n_terms(n) {}

  CANDOR_DEVICE void clear(int32_t n_tiles) const {
    if (thread() >= kTileResults) return;
    for (int32_t tile = 0; tile < n_tiles; ++tile) sums[tile_at(tile)] = 0.0f;
  }
  CANDOR_DEVICE size_t tile_at(int32_t tile) const {
    return static_cast<size_t>(tile * kTileResults) + thread() % kTileResults;
  }
  // Term number `term` of a warp's.
  CANDOR_DEVICE size_t term_at(int32_t turn, uint32_t of_warp, int32_t term) const {
    return static_cast<size_t>(((turn % 2 * kFewWarps + static_cast<int32_t>(of_warp)) * n_terms + term) *
                               kTileResults);
  }
  // Of this warp.
  CANDOR_DEVICE void leave(const Turn& turn, int32_t term, const float (&values)[4]) const {
    CANDOR_UNROLL
    for (size_t i = 0; i < 4; ++i) terms[term_at(turn.number, warp(), term) + 32 * i + lane()] = values[i];
  }
  // For this thread's result.
  CANDOR_DEVICE float take(const Turn& turn, int32_t of_warp, int32_t term) const {
    return terms[term_at(turn.number, static_cast<uint32_t>(of_warp), term) + thread() % kTileResults];
  }
};

CANDOR_DEVICE void store_sums(const ProductPlace& place, const FewSums& shared_sums) {
  if (thread() >= kTileResults) return;
  for (int32_t tile = 0; tile < tiles_of(place); ++tile) {
    const AddedRow row(place, tile);
    store_result(place, row.row, row.output, shared_sums.sums[shared_sums.tile_at(tile)]);
  }
}

}  // namespace candor::backend::cuda
