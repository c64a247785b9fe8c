#pragma once
// Products of many rows with float weights: a block of threads takes four panels and some rows, a thread four outputs
// and some of these rows, k ascending. Slices of 32 k of the rows and of the panels are copied to shared memory some
// stages ahead. Orders: docs/numerics.md, "Products with float weights".
//
// A Weights says how a slice of a panel lies: n_pieces(n_k) of 16 bytes, piece_at(slice, i) in the panel; place(slice,
// q), what a thread with outputs 4 q to 4 q + 3 reads, and pair(p, even, odd), their weights of two k. kChains says
// what is summed, kHasParts whether a block's scale multiplies parts of 128 k.

#include "backend/cuda/kernels/many_rows.h"

namespace candor::backend::cuda {

inline constexpr int kThreadOutputs = 4;

template <int n_rows>
struct FloatSums {
  float sums[n_rows][kThreadOutputs] = {};
};

// x: pair p of k of each row, as it lies. is_odd: of which of the two.
template <int n_rows>
CANDOR_DEVICE void add_products(const float (&x)[n_rows], const float (&w)[kThreadOutputs], FloatSums<n_rows>& to) {
  CANDOR_UNROLL
  for (int r = 0; r < n_rows; ++r) {
    CANDOR_UNROLL
    for (int o = 0; o < kThreadOutputs; ++o) to.sums[r][o] = fma_rn(x[r], w[o], to.sums[r][o]);
  }
}

template <class Weights>
struct FloatTile {
  static constexpr int kRows = float_rows_of_thread(Weights::kHasParts);
  static constexpr int32_t kBlockRows = float_rows_of_block(Weights::kHasParts);
  static constexpr int32_t kPanelStride = float_panel_stride(Weights::kSliceBytes);
  static constexpr int32_t kPanelsAt = kFloatRowStride * kBlockRows;
  static constexpr int32_t kStageBytes = float_stage_bytes(Weights::kHasParts, Weights::kSliceBytes);
  using Sums = FloatSums<kRows>;

  const ProductPlace& place;  // of the first row and this thread's panel
  int32_t quad;               // of the panel's outputs
  int32_t first_row;          // of the block's
  Sums total;
  Sums part;

  CANDOR_DEVICE explicit FloatTile(const ProductPlace& the_place)
      : place(the_place),
        quad(static_cast<int32_t>(thread()) % 4),
        first_row(static_cast<int32_t>(thread()) / (kManyWarps * 4) * kRows) {}

  CANDOR_DEVICE static int32_t panel_of_thread() { return static_cast<int32_t>(thread()) / 4 % kManyWarps; }

  // Four k of a row from k on. begin: of the stage.
  CANDOR_DEVICE Uint4 row_part(int32_t begin, int r, int32_t k) const {
    const auto at = static_cast<size_t>(begin + kFloatRowStride * (first_row + r) + 4 * k);
    return load16(shared<uint8_t>(0).pointer(at, 16));
  }

  // The n_k of a slice onto two chains, or onto one that is both.
  CANDOR_DEVICE void add_chains(int32_t begin, int32_t n_k, Sums& even, Sums& odd) const {
    const auto panel = static_cast<size_t>(begin + kPanelsAt + kPanelStride * panel_of_thread());
    const Weights weights(shared<uint8_t>(0).pointer(panel, Weights::kSliceBytes), quad);
    for (int32_t k = 0; k < n_k; k += 4) {
      Uint4 x[kRows];
      CANDOR_UNROLL
      for (int r = 0; r < kRows; ++r) x[r] = row_part(begin, r, k);
      CANDOR_UNROLL
      for (int i = 0; i < 4; i += 2) {
        float of_even[kThreadOutputs], of_odd[kThreadOutputs], x_even[kRows], x_odd[kRows];
        weights.pair((k + i) / 2, of_even, of_odd);
        CANDOR_UNROLL
        for (int r = 0; r < kRows; ++r) {
          x_even[r] = float_of(i == 0 ? x[r].x : x[r].z);
          x_odd[r] = float_of(i == 0 ? x[r].y : x[r].w);
        }
        if (k + i < n_k) add_products(x_even, of_even, even);
        if (k + i + 1 < n_k) add_products(x_odd, of_odd, odd);
      }
    }
  }

  CANDOR_DEVICE void add_slice(int32_t begin, int32_t slice, int32_t n_k) {
    if constexpr (!Weights::kHasPairs) {
      add_chains(begin, n_k, total, total);
    } else {
      Sums even;
      Sums odd;
      add_chains(begin, n_k, even, odd);
      Sums& sums = Weights::kHasParts ? part : total;
      CANDOR_UNROLL
      for (int i = 0; i < kRows * kThreadOutputs; ++i) {
        float& sum = sums.sums[i / kThreadOutputs][i % kThreadOutputs];
        sum = add_rn(sum, add_rn(even.sums[i / kThreadOutputs][i % kThreadOutputs],
                                 odd.sums[i / kThreadOutputs][i % kThreadOutputs]));
      }
      if constexpr (Weights::kHasParts) {
        if (slice % Weights::kSlicesOfBlock == Weights::kSlicesOfBlock - 1) end_part(slice / Weights::kSlicesOfBlock);
      }
    }
  }

  // Behind the last k of a block.
  CANDOR_DEVICE void end_part(int32_t block) {
    const auto* scales = reinterpret_cast<const float*>(place.panel + block * Weights::kBlockBytes) + 4 * quad;
    CANDOR_UNROLL
    for (int o = 0; o < kThreadOutputs; ++o) {
      const float d = scales[o];
      CANDOR_UNROLL
      for (int r = 0; r < kRows; ++r) total.sums[r][o] = fma_rn(d, part.sums[r][o], total.sums[r][o]);
    }
    part = Sums{};
  }

  CANDOR_DEVICE void store() const {
    CANDOR_UNROLL
    for (int r = 0; r < kRows; ++r) {
      CANDOR_UNROLL
      for (int o = 0; o < kThreadOutputs; ++o) store_result(place, first_row + r, 4 * quad + o, total.sums[r][o]);
    }
  }
};

// Begins to copy a slice of the rows and of this warp's panel. place: of the rows and the panel.
template <class Weights>
CANDOR_DEVICE void begin_slice(const ProductPlace& place, int32_t slice, int32_t n_k) {
  using Tile = FloatTile<Weights>;
  const int32_t begin = slice % kFloatStages * Tile::kStageBytes;
  copy_rows_async<4 * kSliceDepth / 16>(place.x + 4 * kSliceDepth * slice, place, 4 * n_k, begin, kFloatRowStride);
  if (place.n_columns <= 0) return;
  const int32_t to = begin + Tile::kPanelsAt + Tile::kPanelStride * static_cast<int32_t>(warp());
  for (int32_t i = static_cast<int32_t>(lane()); i < Weights::n_pieces(n_k); i += 32) {
    copy_async16(shared<uint8_t>(0), static_cast<size_t>(to + 16 * i), place.panel + Weights::piece_at(slice, i));
  }
}

template <class Weights>
CANDOR_DEVICE void multiply_many_floats(const ProductArgs& args) {
  using Tile = FloatTile<Weights>;
  const int32_t first_panel = kManyWarps * static_cast<int32_t>(block_y());
  const int32_t first_row = Tile::kBlockRows * static_cast<int32_t>(block_x());
  const ProductPlace of_warp =
      find_place(args, first_panel + static_cast<int32_t>(warp()), first_row, Tile::kBlockRows);
  if (of_warp.n_rows <= 0) return;
  const ProductPlace place = find_place(args, first_panel + Tile::panel_of_thread(), first_row, Tile::kBlockRows);
  const int32_t n_slices = (args.n_in + kSliceDepth - 1) / kSliceDepth;
  const auto depth = [&](int32_t slice) {
    return args.n_in - kSliceDepth * slice < kSliceDepth ? args.n_in - kSliceDepth * slice : kSliceDepth;
  };
  const auto begin = [&](int32_t slice) {
    if (slice < n_slices) begin_slice<Weights>(of_warp, slice, depth(slice));
    commit_async();
  };
  Tile tile(place);
  for (int32_t slice = 0; slice < kFloatStages - 1; ++slice) begin(slice);
  for (int32_t slice = 0; slice < n_slices; ++slice) {
    wait_async<kFloatStages - 2>();
    sync_block();
    begin(slice + kFloatStages - 1);
    if (place.n_columns > 0) tile.add_slice(slice % kFloatStages * Tile::kStageBytes, slice, depth(slice));
  }
  wait_async<0>();
  tile.store();
}

}  // namespace candor::backend::cuda
