#pragma once
// Keys and values in a block's shared memory, and what attention multiplies them with. Included behind language.h.
//
// They lie in stages: 8 pieces of rows, a row is 64 bytes, 4 quarters. Of keys, a piece is half a page (16 tokens), a
// row two dims of bf16 or one of f32, and a stage has a tile's 4 pages and up to 32 dims. Of values, a piece is 16
// dims, a row two tokens of bf16 or one of f32, and a stage has a page and up to 128 dims. Pieces are an odd number of
// rows apart, so that two of them are read without a conflict of banks.
//
// Values that are the beginnings of keys are read from key pages: a stage has both halves of a page and 128 dims, and
// the quarters of a row change places by its number.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

// Begins at word `at`.
struct Stage {
  Shared<uint32_t> words;
  uint32_t at;
};

// How a row of a stage is read: the lane's quarter of it, of an even and the next odd dim (token), 4 tokens (dims)
// each.
struct PairRows {
  static constexpr bool kRoundsOperands = true;
  static constexpr int32_t kPer = 2;  // dims (tokens) of a row

  CANDOR_DEVICE static float even(uint32_t pair) { return float_of(pair << 16); }
  CANDOR_DEVICE static float odd(uint32_t pair) { return float_of(pair & 0xffff0000u); }
  // at: of the piece.
  CANDOR_DEVICE static void load(const Stage& s, uint32_t at, uint32_t pair, float (&x0)[4], float (&x1)[4]) {
    const Uint4 w = load16(s.words.pointer(at + pair * kRowWords + 4 * (lane() % 4), 4));
    x0[0] = even(w.x), x0[1] = even(w.y), x0[2] = even(w.z), x0[3] = even(w.w);
    x1[0] = odd(w.x), x1[1] = odd(w.y), x1[2] = odd(w.z), x1[3] = odd(w.w);
  }
};
struct WideRows {
  static constexpr bool kRoundsOperands = false;
  static constexpr int32_t kPer = 1;

  CANDOR_DEVICE static void load_row(const Stage& s, uint32_t at, float (&x)[4]) {
    const Uint4 w = load16(s.words.pointer(at + 4 * (lane() % 4), 4));
    x[0] = float_of(w.x), x[1] = float_of(w.y), x[2] = float_of(w.z), x[3] = float_of(w.w);
  }
  CANDOR_DEVICE static void load(const Stage& s, uint32_t at, uint32_t pair, float (&x0)[4], float (&x1)[4]) {
    load_row(s, at + 2 * pair * kRowWords, x0);
    load_row(s, at + (2 * pair + 1) * kRowWords, x1);
  }
};

template <class Rows>
constexpr int32_t piece_words() {
  return piece_words(Rows::kPer);
}
template <class Rows>
constexpr int32_t stage_words() {
  return stage_words(Rows::kPer);
}

// Where quarter c of a row of latent values stands: rows of a half, then those of the other.
template <class Rows>
CANDOR_DEVICE uint32_t latent_word(uint32_t half, uint32_t row, uint32_t c) {
  return (half * (kChunkDims / Rows::kPer) + row) * kRowWords + (c ^ (row >> 1 & 3)) * 4;
}

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
      const Uint4 w = load16(weights.pointer(at + 2 * r, 4));
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
      uint32_t w[4];
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) w[j] = bits_of(add_rn(even[r][j], odd[r][j]));
      store16(memory, at + 128 * r, Uint4{w[0], w[1], w[2], w[3]});
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
};

// Where n queries' weights stand: those of pair i from at + i * stride on, in floats.
struct PairWeights {
  Shared<float> memory;
  uint32_t at;
  uint32_t stride;
};

// Keys: the lane's piece is half a page, and its 4 tokens are 4 * lane + j of the tile. Values: its dims are 4 * lane +
// j of the chunk.
template <class Rows, int n>
CANDOR_DEVICE void multiply_rows(const Stage& stage, uint32_t piece, const PairWeights& w, int32_t n_pairs,
                                 PairSums<n>& sums) {
  const uint32_t at = stage.at + piece * piece_words<Rows>();
  sums.clear();
  for (int32_t pair = 0; pair < n_pairs; ++pair) {
    float x0[4];
    float x1[4];
    Rows::load(stage, at, pair, x0, x1);
    sums.add_pair(x0, x1, w.memory, w.at + pair * w.stride);
  }
}

// Dim j of the lane in a chunk of latent values.
template <class Rows>
CANDOR_DEVICE int32_t latent_dim(uint32_t j) {
  return Rows::kPer == 2 ? lane() * 2 + j % 2 + j / 2 * 64 : lane() + 32 * j;
}

// Numbers of 4 tokens of the lane's dims: x[token][dim].
CANDOR_DEVICE void load_latent(PairRows, const Stage& s, uint32_t half, uint32_t c, float (&x)[4][4]) {
  CANDOR_UNROLL
  for (uint32_t i = 0; i < 2; ++i) {
    const Uint4 w = load16(s.words.pointer(s.at + latent_word<PairRows>(half, lane() + 32 * i, c), 4));
    const uint32_t words[4] = {w.x, w.y, w.z, w.w};
    CANDOR_UNROLL
    for (uint32_t t = 0; t < 4; ++t) {
      x[t][2 * i] = PairRows::even(words[t]);
      x[t][2 * i + 1] = PairRows::odd(words[t]);
    }
  }
}
CANDOR_DEVICE void load_latent(WideRows, const Stage& s, uint32_t half, uint32_t c, float (&x)[4][4]) {
  CANDOR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    const Uint4 w = load16(s.words.pointer(s.at + latent_word<WideRows>(half, lane() + 32 * i, c), 4));
    x[0][i] = float_of(w.x);
    x[1][i] = float_of(w.y);
    x[2][i] = float_of(w.z);
    x[3][i] = float_of(w.w);
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
