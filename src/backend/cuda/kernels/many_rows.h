#pragma once
// Integer products of many rows (reading a prompt): a block of threads takes 64 rows and four panels. A warp multiplies
// its panel with all rows by mma_s8, k ascending, so that the sums of floats stay with one lane. 256 k of the rows and
// of the panels are copied to shared memory while the 256 before them are multiplied.
//
// A Sums says what a format makes of it: Layout (product_launch.h), kFirstUnitAt, the bytes of a panel before its
// units, unit_bytes(n_k), scales_at(u) of a row's scales; add<has_all_tiles>(stage), which adds 256 k; result(tile, i,
// place).

#include "backend/cuda/kernels/product_launch.h"
#include "backend/cuda/kernels/product_place.h"
#include "backend/cuda/kernels/unit_planes.h"

namespace candor::backend::cuda {

// The part of shared memory that holds unit u, as a warp sees it. Rows of a tile that are not there hold anything.
struct ManyStage {
  int32_t begin;  // in shared memory
  int32_t unit;
  int32_t n_k;
  int32_t n_tiles;

  template <class T>
  CANDOR_DEVICE T at(int32_t byte) const {
    return shared<T>(0)[static_cast<size_t>(begin + byte) / sizeof(T)];
  }
  static CANDOR_DEVICE int32_t row_of_lane(int32_t tile) {
    return kTileRows * tile + static_cast<int32_t>(lane_group());
  }
  // Row i % 2 of the two whose results a lane has.
  static CANDOR_DEVICE int32_t row_of_result(int32_t tile, int32_t i) {
    return kTileRows * tile + 2 * static_cast<int32_t>(lane_quarter()) + i % 2;
  }
  static CANDOR_DEVICE int32_t output_of_result(int32_t i) { return 2 * static_cast<int32_t>(lane_group()) + i / 2; }

  // What mma_s8 wants of a tile's rows and block b.
  CANDOR_DEVICE void codes(int32_t tile, int32_t b, uint32_t (&x)[2]) const {
    const Uint2 eight = at<Uint2>(kCodesStride * row_of_lane(tile) + 32 * b + 8 * static_cast<int32_t>(lane_quarter()));
    x[0] = eight.x;
    x[1] = eight.y;
  }
  // This warp's.
  template <class Layout>
  CANDOR_DEVICE const uint8_t* unit_bytes() const {
    const int32_t first = begin + Layout::kUnitsAt + Layout::kUnitBytes * static_cast<int32_t>(warp());
    return shared<uint8_t>(0).pointer(static_cast<size_t>(first), Layout::kUnitBytes);
  }
};

// Begins to copy parts of n_rows rows, n_bytes each (of at most 16 n_pieces, a power of two): from `from`, row_bytes
// apart, to shared memory, `stride` apart.
template <int32_t n_pieces>
CANDOR_DEVICE void copy_rows_async(const uint8_t* from, const ProductPlace& place, int32_t n_bytes, int32_t to,
                                   int32_t stride) {
  constexpr int32_t kStep = static_cast<int32_t>(kManyThreads) / n_pieces;  // rows
  const int32_t first = static_cast<int32_t>(thread()) / n_pieces;
  const int32_t at = static_cast<int32_t>(thread()) % n_pieces * 16;
  if (at >= n_bytes) return;
  from += int64_t{first} * place.args.row_bytes + at;
  to += first * stride + at;
  for (int32_t row = first; row < place.n_rows; row += kStep) {
    copy_async16(shared<uint8_t>(0), static_cast<size_t>(to), from);
    from += int64_t{kStep} * place.args.row_bytes;
    to += kStep * stride;
  }
}

// The same of n_bytes that lie together, by one warp.
CANDOR_DEVICE void copy_bytes_async(const uint8_t* from, int32_t n_bytes, int32_t to) {
  for (int32_t at = 16 * static_cast<int32_t>(lane()); at < n_bytes; at += 16 * 32) {
    copy_async16(shared<uint8_t>(0), static_cast<size_t>(to + at), from + at);
  }
}

// k of unit u.
template <class Sums>
CANDOR_DEVICE int32_t depth_of_unit(const ProductArgs& args, int32_t u) {
  const int32_t n_left = Sums::depth_of(args.n_in) - kernels::kUnit * u;
  return n_left < kernels::kUnit ? n_left : kernels::kUnit;
}

// Begins to copy unit u of the rows and of this warp's panel. place: of the rows and the panel.
template <class Sums>
CANDOR_DEVICE void begin_unit(const ProductPlace& place, int32_t u) {
  using Layout = typename Sums::Layout;
  const int32_t to = u % kManyStages * Layout::kBytes;
  const int32_t n_k = depth_of_unit<Sums>(place.args, u);
  copy_rows_async<kernels::kUnit / 16>(place.x + kernels::kUnit * u, place, n_k, to, kCodesStride);
  if constexpr (Layout::kSumBytes > 0) {
    copy_rows_async<Layout::kSumBytes / 16>(place.x + place.args.sums_at + Layout::kSumBytes * u, place,
                                            Layout::kSumBytes, to + Layout::kSumsAt, Layout::kSumBytes);
  }
  if constexpr (Layout::kScaleBytes > 0) {
    copy_rows_async<Layout::kScaleBytes / 16>(place.x + place.args.scales_at + Sums::scales_at(u), place,
                                              Layout::kScaleBytes, to + Layout::kScalesAt, Layout::kScaleStride);
  }
  if (place.n_columns > 0) {
    copy_bytes_async(place.panel + Sums::kFirstUnitAt + int64_t{Layout::kUnitBytes} * u, Sums::unit_bytes(n_k),
                     to + Layout::kUnitsAt + Layout::kUnitBytes * static_cast<int32_t>(warp()));
  }
  commit_async();
}

template <class Sums>
CANDOR_DEVICE void multiply_many(const ProductArgs& args) {
  const int32_t panel = kManyWarps * static_cast<int32_t>(block_y()) + static_cast<int32_t>(warp());
  const ProductPlace place = find_place(args, panel, kManyRows * static_cast<int32_t>(block_x()), kManyRows);
  if (place.n_rows <= 0) return;
  const int32_t n_units = (Sums::depth_of(args.n_in) + kernels::kUnit - 1) / kernels::kUnit;
  const int32_t n_tiles = (place.n_rows + kTileRows - 1) / kTileRows;
  Sums sums;
  begin_unit<Sums>(place, 0);
  for (int32_t u = 0; u < n_units; ++u) {
    wait_async<0>();
    sync_block();
    if (u + 1 < n_units) begin_unit<Sums>(place, u + 1);
    if (place.n_columns <= 0) continue;
    const ManyStage stage{u % kManyStages * Sums::Layout::kBytes, u, depth_of_unit<Sums>(args, u), n_tiles};
    if (n_tiles == kManyTiles) sums.template add<true>(stage);
    if (n_tiles < kManyTiles) sums.template add<false>(stage);
  }
  CANDOR_UNROLL
  for (int32_t tile = 0; tile < kManyTiles; ++tile) {
    CANDOR_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t row = ManyStage::row_of_result(tile, i);
      const int32_t output = ManyStage::output_of_result(i);
      if (row < place.n_rows && output < place.n_columns) {
        store_result(place, row, output, sums.result(tile, i, place));
      }
    }
  }
}

}  // namespace candor::backend::cuda
