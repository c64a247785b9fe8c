#pragma once
// Integer products of many rows (reading a prompt): a block of threads takes 64 rows and four panels. A warp multiplies
// its panel with all rows by mma_s8, k ascending, so that the sums of floats stay with one lane. 256 k of the rows and
// of the panels are copied to shared memory while the 256 before them are multiplied.
//
// A Sums says what a format makes of it: Layout (product_launch.h), kFirstUnitAt, the bytes of a panel before its
// units, unit_bytes(n_k), scales_at(u) of a row's scales; add(stage), which adds 256 k; result(tile, i, place).

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

// Copies n pieces of 16 bytes, some by each thread: piece i to begin + to(i) from from(i).
template <class To, class From>
CANDOR_DEVICE void copy_pieces_async(int32_t n, const To& to, const From& from) {
  for (int32_t i = static_cast<int32_t>(thread()); i < n; i += static_cast<int32_t>(kManyThreads)) {
    copy_async16(shared<uint8_t>(0), static_cast<size_t>(to(i)), from(i));
  }
}

// Where a block copies from.
template <class Sums>
struct ManySource {
  using Layout = typename Sums::Layout;

  const ProductArgs& args;
  const uint8_t* x;       // the first row
  const uint8_t* panels;  // the first panel
  int32_t n_rows;
  int32_t n_panels;

  CANDOR_DEVICE int32_t depth(int32_t u) const {
    const int32_t n_left = Sums::depth_of(args.n_in) - kernels::kUnit * u;
    return n_left < kernels::kUnit ? n_left : kernels::kUnit;
  }

  // Parts of rows, each `bytes` long, `stride` apart in shared memory from `to` on.
  CANDOR_DEVICE void copy_rows(int32_t to, int32_t stride, int32_t bytes, int64_t from) const {
    const int32_t of_row = bytes / 16;
    copy_pieces_async(
        of_row * n_rows, [=](int32_t i) { return to + stride * (i / of_row) + 16 * (i % of_row); },
        [&](int32_t i) { return x + int64_t{i / of_row} * args.row_bytes + from + 16 * (i % of_row); });
  }
  // Begins to copy unit u.
  CANDOR_DEVICE void begin(int32_t u) const {
    const int32_t to = u % kManyStages * Layout::kBytes;
    const int32_t n_k = depth(u);
    copy_rows(to, kCodesStride, n_k, int64_t{kernels::kUnit} * u);
    if constexpr (Layout::kSumBytes > 0) {
      copy_rows(to + Layout::kSumsAt, Layout::kSumBytes, Layout::kSumBytes,
                args.sums_at + int64_t{Layout::kSumBytes} * u);
    }
    if constexpr (Layout::kScaleBytes > 0) {
      copy_rows(to + Layout::kScalesAt, Layout::kScaleStride, Layout::kScaleBytes, args.scales_at + Sums::scales_at(u));
    }
    const int32_t of_panel = Sums::unit_bytes(n_k) / 16;
    const int64_t first = Sums::kFirstUnitAt + int64_t{Layout::kUnitBytes} * u;
    copy_pieces_async(
        of_panel * n_panels,
        [=](int32_t i) { return to + Layout::kUnitsAt + Layout::kUnitBytes * (i / of_panel) + 16 * (i % of_panel); },
        [&](int32_t i) { return panels + int64_t{i / of_panel} * args.panel_bytes + first + 16 * (i % of_panel); });
    commit_async();
  }
};

template <class Sums>
CANDOR_DEVICE void multiply_many(const ProductArgs& args) {
  const int32_t first_panel = kManyWarps * static_cast<int32_t>(block_y());
  const int32_t panel = first_panel + static_cast<int32_t>(warp());
  const int32_t n_left = (args.n_out + kPanelRows - 1) / kPanelRows - first_panel;
  const ProductPlace place = find_place(args, panel, kManyRows * static_cast<int32_t>(block_x()), kManyRows);
  if (place.n_rows <= 0) return;
  const ManySource<Sums> source{args, place.x, place.panel - int64_t{warp()} * args.panel_bytes, place.n_rows,
                                n_left < kManyWarps ? n_left : kManyWarps};
  const int32_t n_units = (Sums::depth_of(args.n_in) + kernels::kUnit - 1) / kernels::kUnit;
  const int32_t n_tiles = (place.n_rows + kTileRows - 1) / kTileRows;
  Sums sums;
  source.begin(0);
  for (int32_t u = 0; u < n_units; ++u) {
    wait_async<0>();
    sync_block();
    if (u + 1 < n_units) source.begin(u + 1);
    if (place.n_columns > 0) sums.add({u % kManyStages * Sums::Layout::kBytes, u, source.depth(u), n_tiles});
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
