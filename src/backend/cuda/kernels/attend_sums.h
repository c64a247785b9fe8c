#pragma once
// The products of attention: even and odd chains of a lane, of keys by dims or of values by tokens. Included behind
// language.h. Order: docs/numerics.md, "Attention", steps 3 and 4.

#include <cstdint>

#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

// The sums of n queries, of 4 tokens or 4 dims of a lane: of the even ones, and of the odd ones.
template <int n>
struct PairSums {
  float even[n][4];
  float odd[n][4];

  CANDOR_DEVICE void clear() {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) even[r][j] = odd[r][j] = 0.0f;
    }
  }
  // weights: pairs of an even and an odd number, of query after query.
  CANDOR_DEVICE void add_pair(const float (&x0)[4], const float (&x1)[4], Shared<float> weights, uint32_t at) {
    CANDOR_UNROLL
    for (int r = 0; r < n; r += 2) {
      const Uint4 w = load16(weights.pointer(at + static_cast<uint32_t>(2 * r), 4));
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) {
        even[r][j] = fma_rn(x0[j], float_of(w.x), even[r][j]);
        odd[r][j] = fma_rn(x1[j], float_of(w.y), odd[r][j]);
        even[r + 1][j] = fma_rn(x0[j], float_of(w.z), even[r + 1][j]);
        odd[r + 1][j] = fma_rn(x1[j], float_of(w.w), odd[r + 1][j]);
      }
    }
  }
  // Those of query r from at + 128 * r on.
  CANDOR_DEVICE void store(Shared<float> memory, uint32_t at) const {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      float x[4];
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = add_rn(even[r][j], odd[r][j]);
      store4(memory, at + static_cast<uint32_t>(128 * r), x);
    }
  }
  // To those of query r where bit 4 * r of the mask is set.
  CANDOR_DEVICE void add_to(float (&totals)[n][4], uint32_t mask) const {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      if ((mask >> (4 * r) & 1) == 0) continue;
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) totals[r][j] = add_rn(totals[r][j], add_rn(even[r][j], odd[r][j]));
    }
  }
  // Of two pages, of which lanes 16 to 31 have the second's: to those of query r in lanes 0 to 15, where bit 4 * r
  // (4 * r + 1) of the mask is set.
  CANDOR_DEVICE void add_halves_to(float (&totals)[n][4], uint32_t mask) const {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) {
        const float own = add_rn(even[r][j], odd[r][j]);
        const float other = shuffle_xor(own, 16);
        if ((mask >> (4 * r) & 1) != 0) totals[r][j] = add_rn(totals[r][j], own);
        if ((mask >> (4 * r + 1) & 1) != 0) totals[r][j] = add_rn(totals[r][j], other);
      }
    }
  }
};

// Where n queries' weights stand: those of pair i from at + i * stride on, in floats.
struct PairWeights {
  Shared<float> memory;
  uint32_t at;
  uint32_t stride;
};

// Keys: the lane's piece is half a page, and its 4 tokens are 4 * lane + j of the tile. Values: its dims are 4 * lane +
// j of the chunk. n_pairs: even.
template <class Rows, bool is_key, int n>
CANDOR_DEVICE void multiply_rows(const Stage& stage, uint32_t piece, const PairWeights& w, uint32_t n_pairs,
                                 PairSums<n>& sums) {
  const typename Rows::template Reader<is_key> reader(stage, piece);
  sums.clear();
  for (uint32_t first = 0; first < n_pairs; first += 2) {
    CANDOR_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      float x0[4];
      float x1[4];
      reader.load(first + i, x0, x1);
      sums.add_pair(x0, x1, w.memory, w.at + (first + i) * w.stride);
    }
  }
}

// The values of a page, of latent_dim's dims.
template <class Rows, int n>
CANDOR_DEVICE void multiply_latent(const Stage& stage, const PairWeights& w, PairSums<n>& sums) {
  sums.clear();
  for (uint32_t i = 0; i < 8; ++i) {
    float x[4][4];
    load_latent(Rows{}, stage, i / 4, i % 4, x);
    sums.add_pair(x[0], x[1], w.memory, w.at + 2 * i * w.stride);
    sums.add_pair(x[2], x[3], w.memory, w.at + (2 * i + 1) * w.stride);
  }
}

}  // namespace candor::backend::cuda::attention
