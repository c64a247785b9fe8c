#pragma once
// Keys and values in a block's shared memory, and what attention multiplies them with. Included behind language.h.
//
// They lie in stages: 8 pieces of rows. Of keys, a piece is half a page (16 tokens), and a stage has a tile's 4 pages
// and up to 32 dims. Of values, a piece is 16 dims, and a stage has a page and up to 128 dims. A row has 16 tokens (16
// dims) in 4 quarters, which 4 lanes read: of two dims (tokens) as pairs of bf16, or of one as f32. Of pairs of int8
// codes a row has 8 tokens (8 dims), and scales stand behind the pieces. Pieces are so far apart that 8 of them are
// read without a conflict of banks.
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

CANDOR_DEVICE Uint4 load_words(Shared<uint32_t> words, uint32_t at) {
  return load16(words.pointer(at, 4));
}
// 4 floats from a place that is a multiple of 4.
CANDOR_DEVICE void load4(Shared<float> s, uint32_t at, float (&x)[4]) {
  const Uint4 w = load16(s.pointer(at, 4));
  x[0] = float_of(w.x), x[1] = float_of(w.y), x[2] = float_of(w.z), x[3] = float_of(w.w);
}
CANDOR_DEVICE void store4(Shared<float> s, uint32_t at, const float (&x)[4]) {
  store16(s, at, Uint4{bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])});
}
CANDOR_DEVICE float even_of(uint32_t pair) {
  return float_of(pair << 16);
}
CANDOR_DEVICE float odd_of(uint32_t pair) {
  return float_of(pair & 0xffff0000u);
}
CANDOR_DEVICE void unpack(const Uint4& w, float (&even)[4], float (&odd)[4]) {
  even[0] = even_of(w.x), even[1] = even_of(w.y), even[2] = even_of(w.z), even[3] = even_of(w.w);
  odd[0] = odd_of(w.x), odd[1] = odd_of(w.y), odd[2] = odd_of(w.z), odd[3] = odd_of(w.w);
}

// Rows of two dims (tokens).
struct PairRows {
  static constexpr bool kRoundsOperands = true;
  static constexpr int32_t kPer = 2;

  // Of the lane's quarter: pair i of dims (tokens), of 4 tokens (dims).
  template <bool is_key>
  struct Reader {
    Shared<uint32_t> words;
    uint32_t at;

    CANDOR_DEVICE Reader(const Stage& stage, uint32_t piece)
        : words(stage.words), at(stage.at + piece * piece_words(kPer) + 4 * (lane() % 4)) {}
    CANDOR_DEVICE void load(uint32_t pair, float (&x0)[4], float (&x1)[4]) const {
      unpack(load_words(words, at + pair * kRowWords), x0, x1);
    }
  };
};

// Rows of one.
struct WideRows {
  static constexpr bool kRoundsOperands = false;
  static constexpr int32_t kPer = 1;

  template <bool is_key>
  struct Reader {
    Shared<uint32_t> words;
    uint32_t at;

    CANDOR_DEVICE Reader(const Stage& stage, uint32_t piece)
        : words(stage.words), at(stage.at + piece * piece_words(kPer) + 4 * (lane() % 4)) {}
    CANDOR_DEVICE void load_row(uint32_t row, float (&x)[4]) const {
      const Uint4 w = load_words(words, at + row * kRowWords);
      x[0] = float_of(w.x), x[1] = float_of(w.y), x[2] = float_of(w.z), x[3] = float_of(w.w);
    }
    CANDOR_DEVICE void load(uint32_t pair, float (&x0)[4], float (&x1)[4]) const {
      load_row(2 * pair, x0);
      load_row(2 * pair + 1, x1);
    }
  };
};

CANDOR_DEVICE float scale_of(uint32_t halves, uint32_t i) {
  return half_to_float(static_cast<uint16_t>(halves >> (16 * i)));
}

// Codes in pairs, which are multiplied by integers (attend_words.h), and scales.
struct CodeRows {
  static constexpr bool kRoundsOperands = false;
  static constexpr int32_t kPer = 2;
};

// Where quarter c of a row of latent values stands: rows of a half, then those of the other.
template <class Rows>
CANDOR_DEVICE uint32_t latent_word(uint32_t half, uint32_t row, uint32_t c) {
  return (half * (kChunkDims / Rows::kPer) + row) * kRowWords + (c ^ (row >> 1 & 3)) * 4;
}

// Dim j of the lane in a chunk of latent values.
template <class Rows>
CANDOR_DEVICE int32_t latent_dim(uint32_t j) {
  return static_cast<int32_t>(Rows::kPer == 2 ? lane() * 2 + j % 2 + j / 2 * 64 : lane() + 32 * j);
}

// Numbers of 4 tokens of the lane's dims: x[token][dim].
CANDOR_DEVICE void load_latent(PairRows, const Stage& s, uint32_t half, uint32_t c, float (&x)[4][4]) {
  CANDOR_UNROLL
  for (uint32_t i = 0; i < 2; ++i) {
    float even[4];
    float odd[4];
    unpack(load_words(s.words, s.at + latent_word<PairRows>(half, lane() + 32 * i, c)), even, odd);
    CANDOR_UNROLL
    for (uint32_t t = 0; t < 4; ++t) {
      x[t][2 * i] = even[t];
      x[t][2 * i + 1] = odd[t];
    }
  }
}
CANDOR_DEVICE void load_latent(WideRows, const Stage& s, uint32_t half, uint32_t c, float (&x)[4][4]) {
  CANDOR_UNROLL
  for (uint32_t i = 0; i < 4; ++i) {
    const Uint4 w = load_words(s.words, s.at + latent_word<WideRows>(half, lane() + 32 * i, c));
    x[0][i] = float_of(w.x);
    x[1][i] = float_of(w.y);
    x[2][i] = float_of(w.z);
    x[3][i] = float_of(w.w);
  }
}

}  // namespace candor::backend::cuda::attention
