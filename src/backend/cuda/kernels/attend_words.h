#pragma once
// The products of attention with pages of codes: int16 (attend_encode.h) by int8, whose sums are exact. Included behind
// language.h. Order: docs/numerics.md, "Attention", "Codes".

#include <cstdint>

#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

// Where n queries' words stand: those of pair i from at + i * stride on.
struct WordPlace {
  Shared<uint32_t> memory;
  uint32_t at;
  uint32_t stride;
};
// Of pairs i and i + 1; i is even. REQUIRES: the stride of 2 queries is 2.
template <int n>
CANDOR_DEVICE void load_two(const WordPlace& w, uint32_t i, uint32_t (&x)[2][n]) {
  if constexpr (n == 2) {
    const Uint4 v = load_words(w.memory, w.at + 2 * i);
    x[0][0] = v.x, x[0][1] = v.y, x[1][0] = v.z, x[1][1] = v.w;
  } else {
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 2; ++j) {
      CANDOR_UNROLL
      for (uint32_t r = 0; r < n; r += 4) {
        const Uint4 v = load_words(w.memory, w.at + (i + j) * w.stride + r);
        x[j][r] = v.x, x[j][r + 1] = v.y, x[j][r + 2] = v.z, x[j][r + 3] = v.w;
      }
    }
  }
}

// The sums of n queries, of 4 tokens or 4 dims of a lane.
template <int n>
struct CodeSums {
  int32_t of[n][4];

  CANDOR_DEVICE void clear() {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) of[r][j] = 0;
    }
  }
  // Those of query r from at + 128 * r on.
  CANDOR_DEVICE void store(Shared<float> memory, uint32_t at) const {
    CANDOR_UNROLL
    for (int r = 0; r < n; ++r) {
      store16(memory, at + static_cast<uint32_t>(128 * r),
              Uint4{static_cast<uint32_t>(of[r][0]), static_cast<uint32_t>(of[r][1]), static_cast<uint32_t>(of[r][2]),
                    static_cast<uint32_t>(of[r][3])});
    }
  }
};
CANDOR_DEVICE void load_sums(Shared<float> memory, uint32_t at, int32_t (&sums)[4]) {
  const Uint4 w = load16(memory.pointer(at, 4));
  sums[0] = static_cast<int32_t>(w.x), sums[1] = static_cast<int32_t>(w.y);
  sums[2] = static_cast<int32_t>(w.z), sums[3] = static_cast<int32_t>(w.w);
}

// The lane's quarter of a piece: its 4 tokens (dims) of each pair of dims (tokens).
struct CodeReader {
  Shared<uint32_t> words;
  uint32_t at;

  CANDOR_DEVICE CodeReader(const Stage& stage, uint32_t piece)
      : words(stage.words), at(stage.at + piece * kCodePieceWords + 2 * (lane() % 4)) {}
  CANDOR_DEVICE uint32_t word(uint32_t pair, uint32_t i) const { return words[at + pair * 2 * kCodeRowWords + i]; }
};

// Adds to the sums. n_pairs: even.
template <int n>
CANDOR_DEVICE void multiply_codes(const CodeReader& codes, const WordPlace& w, uint32_t n_pairs, CodeSums<n>& sums) {
  for (uint32_t first = 0; first < n_pairs; first += 2) {
    uint32_t x[2][n];
    load_two<n>(w, first, x);
    CANDOR_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t c0 = codes.word(first + i, 0);
      const uint32_t c1 = codes.word(first + i, 1);
      CANDOR_UNROLL
      for (int r = 0; r < n; ++r) {
        sums.of[r][0] = dot2_low(x[i][r], c0, sums.of[r][0]);
        sums.of[r][1] = dot2_high(x[i][r], c0, sums.of[r][1]);
        sums.of[r][2] = dot2_low(x[i][r], c1, sums.of[r][2]);
        sums.of[r][3] = dot2_high(x[i][r], c1, sums.of[r][3]);
      }
    }
  }
}

// Adds a page's values that are the beginnings of keys: dims 2 * lane and 2 * lane + 1 of a chunk, and those 64 behind
// them. w: of the page's tokens, for the former and for the latter.
template <int n>
CANDOR_DEVICE void multiply_latent_codes(const Stage& stage, const WordPlace (&w)[2], CodeSums<n>& sums) {
  for (uint32_t quad = 0; quad < 8; ++quad) {
    CANDOR_UNROLL
    for (uint32_t i = 0; i < 2; ++i) {
      const uint32_t row = quad / 4 * kChunkDims + 2 * (lane() + 32 * i);
      const uint32_t at = stage.at + row * kCodeRowWords + quad % 4 * 2;
      const uint32_t c0 = stage.words[at];
      const uint32_t c1 = stage.words[at + 1];
      const uint32_t first = permute_bytes(c0, c1, 0x6420u);
      const uint32_t second = permute_bytes(c0, c1, 0x7531u);
      uint32_t x[2][n];
      load_two<n>(w[i], 2 * quad, x);
      CANDOR_UNROLL
      for (int r = 0; r < n; ++r) {
        sums.of[r][2 * i] = dot2_high(x[1][r], first, dot2_low(x[0][r], first, sums.of[r][2 * i]));
        sums.of[r][2 * i + 1] = dot2_high(x[1][r], second, dot2_low(x[0][r], second, sums.of[r][2 * i + 1]));
      }
    }
  }
}

// Of the lane's 4 tokens: the scales of a piece of keys.
CANDOR_DEVICE void load_key_scales(const Stage& stage, uint32_t piece, float (&scales)[4]) {
  const uint32_t at = stage.at + kCodeScalesAt + piece * 8 + lane() % 4 * 2;
  CANDOR_UNROLL
  for (uint32_t j = 0; j < 4; ++j) scales[j] = scale_of(stage.words[at + j / 2], j % 2);
}

// Outputs with a tile's sums.
CANDOR_DEVICE void add_sums(float (&x)[4], const int32_t (&sums)[4], float factor) {
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) x[j] = fma_rn(to_float_rn(sums[j]), factor, x[j]);
}

}  // namespace candor::backend::cuda::attention
