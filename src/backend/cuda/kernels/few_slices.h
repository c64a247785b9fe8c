#pragma once
// Products of a few rows with BF16, FP8 and FP4 weights. Of each 32 k two chains run over the even and the odd k, and
// all 32 k of a panel are multiplied side by side: four lanes take the 16 outputs of one slice of 32 k. Their sums go
// to shared memory; one thread an output and row adds them, k ascending. Orders: docs/numerics.md, "Products with float
// weights".
//
// A Source is the weights of a slice and four outputs: load(panel, slice, n_k), even(p, o) and odd(p, o) of pair p < 16
// of k and output o < 4, and add_slices(), which adds the terms of a turn for one output; kScaleBytes: from the scale
// of an output to that of the next; kIsWhole: n_k is 32.

#include "backend/cuda/kernels/float_codes.h"
#include "backend/cuda/kernels/product_launch.h"
#include "backend/cuda/kernels/product_place.h"
#include "backend/cuda/kernels/unit_planes.h"

namespace candor::backend::cuda {

inline constexpr int kPairsOfSlice = kSliceDepth / 2;
inline constexpr int kSliceOutputs = 4;  // of a lane

// Two chains of each row and output.
struct SliceChains {
  float even[kSliceRows][kSliceOutputs] = {};
  float odd[kSliceRows][kSliceOutputs] = {};
};

// Activations of some rows from one k on, as halves.
struct SliceRows {
  const uint8_t* at[kSliceRows];

  CANDOR_DEVICE SliceRows(const ProductPlace& place, int32_t first, int32_t slice) {
    CANDOR_UNROLL
    for (int32_t r = 0; r < kSliceRows; ++r) {
      at[r] = place.row(first + r) + place.args.halves_at + 2 * kSliceDepth * slice;
    }
  }
};

// Pair p of k and of each row's activations, but for what is past the row's end.
template <class Source>
CANDOR_DEVICE void add_pair(const Source& weights, int p, const uint32_t (&x)[kSliceRows], int32_t n_k,
                            SliceChains& chains) {
  CANDOR_UNROLL
  for (int o = 0; o < kSliceOutputs; ++o) {
    const float even = weights.even(p, o);
    const float odd = weights.odd(p, o);
    CANDOR_UNROLL
    for (int r = 0; r < kSliceRows; ++r) {
      if (2 * p < n_k) chains.even[r][o] = fma_rn(even_of(x[r]), even, chains.even[r][o]);
      if (2 * p + 1 < n_k) chains.odd[r][o] = fma_rn(odd_of(x[r]), odd, chains.odd[r][o]);
    }
  }
}

// n_k: of the slice.
template <class Source>
CANDOR_DEVICE void run_chains(const Source& weights, const SliceRows& rows, int32_t n_k, SliceChains& chains) {
  CANDOR_UNROLL
  for (int p = 0; p < kPairsOfSlice; p += 4) {
    if (2 * p >= n_k) return;
    Uint4 x[kSliceRows];
    CANDOR_UNROLL
    for (int r = 0; r < kSliceRows; ++r) x[r] = load16(rows.at[r] + 4 * p);
    CANDOR_UNROLL
    for (int i = 0; i < 4; ++i) {
      uint32_t pairs[kSliceRows];
      CANDOR_UNROLL
      for (int r = 0; r < kSliceRows; ++r) pairs[r] = element(x[r], i);
      add_pair(weights, p + i, pairs, n_k, chains);
    }
  }
}

// Sums of slices in shared memory, and sums so far.
struct SliceSums {
  Shared<float> terms;  // [2][kSliceRows][kSliceRowStride]
  Shared<float> sums;   // [row][16], each its thread's own

  CANDOR_DEVICE SliceSums() : terms(shared<float>(0)), sums(shared<float>(kSliceTermsBytes)) {}

  CANDOR_DEVICE size_t term_at(int32_t turn, int32_t row, int32_t slice) const {
    return static_cast<size_t>((turn % 2 * kSliceRows + row) * kSliceRowStride + slice * kPanelRows);
  }
  // slice: of the turn's.
  CANDOR_DEVICE void leave(int32_t turn, int32_t slice, const SliceChains& chains) const {
    CANDOR_UNROLL
    for (int32_t r = 0; r < kSliceRows; ++r) {
      uint32_t bits[kSliceOutputs];
      CANDOR_UNROLL
      for (int o = 0; o < kSliceOutputs; ++o) bits[o] = bits_of(add_rn(chains.even[r][o], chains.odd[r][o]));
      store16(terms, term_at(turn, r, slice) + kSliceOutputs * lane_quarter(),
              Uint4{bits[0], bits[1], bits[2], bits[3]});
    }
  }
};

// The sums of n slices for one row and output.
struct SliceTerms {
  Shared<float> terms;
  size_t at;
  int32_t n;

  CANDOR_DEVICE float operator[](int32_t i) const { return terms[at + static_cast<size_t>(i * kPanelRows)]; }
};

// What this thread adds: the sums of one output of every kSliceRows-th row.
struct SliceAdder {
  SliceSums sums;
  int32_t row;  // of kSliceRows
  int32_t output;

  CANDOR_DEVICE SliceAdder()
      : row(static_cast<int32_t>(thread()) / kPanelRows), output(static_cast<int32_t>(thread()) % kPanelRows) {}
  CANDOR_DEVICE bool adds() const { return row < kSliceRows; }
  // Of the rows from `first` on.
  CANDOR_DEVICE size_t sum_at(int32_t first) const { return static_cast<size_t>((first + row) * kPanelRows + output); }

  CANDOR_DEVICE void clear(int32_t n_rows) const {
    for (int32_t first = 0; first < n_rows && adds(); first += kSliceRows) sums.sums[sum_at(first)] = 0.0f;
  }
  // The n slices of a turn, from slice `begin` of the panel on.
  template <class Source>
  CANDOR_DEVICE void add(const uint8_t* panel, int32_t turn, int32_t first, int32_t begin, int32_t n) const {
    if (!adds()) return;
    const SliceTerms terms{sums.terms, sums.term_at(turn, row, 0) + static_cast<size_t>(output), n};
    const float sum = sums.sums[sum_at(first)];
    sums.sums[sum_at(first)] = Source::add_slices(panel + output * Source::kScaleBytes, begin, terms, sum);
  }
  CANDOR_DEVICE void store(const ProductPlace& place) const {
    for (int32_t first = 0; first < place.n_rows && adds(); first += kSliceRows) {
      store_result(place, first + row, output, sums.sums[sum_at(first)]);
    }
  }
};

// One slice of each four lanes, for all rows.
template <class Source>
CANDOR_DEVICE void multiply_slices(const ProductArgs& args) {
  const ProductPlace place =
      find_place(args, static_cast<int32_t>(block_x()), static_cast<int32_t>(block_y()) * kMostFewRows, kMostFewRows);
  if (place.n_rows <= 0) return;
  const SliceAdder adder;
  adder.clear(place.n_rows);
  const int32_t n_slices = (args.n_in + kSliceDepth - 1) / kSliceDepth;
  const int32_t of_turn = static_cast<int32_t>(8 * warp() + lane_group());
  int32_t turn = 0;
  for (int32_t begin = 0; begin < n_slices; begin += kSlicesOfTurn) {
    const int32_t slice = begin + of_turn;
    const int32_t n_k = args.n_in - kSliceDepth * slice;
    Source weights;
    if (n_k > 0) weights.load(place.panel, slice, n_k);
    for (int32_t first = 0; first < place.n_rows; first += kSliceRows, ++turn) {
      if (n_k > 0) {
        SliceChains chains;
        const SliceRows rows(place, first, slice);
        if (n_k >= kSliceDepth) run_chains(weights, rows, kSliceDepth, chains);
        if (!Source::kIsWhole && n_k < kSliceDepth) run_chains(weights, rows, n_k, chains);
        adder.sums.leave(turn, of_turn, chains);
      }
      sync_block();
      const int32_t n = n_slices - begin < kSlicesOfTurn ? n_slices - begin : kSlicesOfTurn;
      adder.template add<Source>(place.panel, turn, first, begin, n);
    }
  }
  adder.store(place);
}

}  // namespace candor::backend::cuda
