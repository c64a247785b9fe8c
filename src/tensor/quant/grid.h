#pragma once
// Formats whose codes name vectors of a fixed list, the format's grid: IQ1, IQ2 and IQ3, as llama.cpp's ggml-common.h
// has them. 256 weights are a super-block: one f16 d, sub-scales 2 s + 1, indices of vectors, and where the grid has
// magnitudes alone, a sign bit for each weight. Value = (d / 2^halvings * (2 s + 1)) * value of the code, in f32: all
// products are exact.
//
// Their block structs have kGrid instead of kPacked, and parse_grid() and build_grid() instead of parse_block() and the
// functions that decode and encode: these are the same for all (decode_grid, encode_grid). Pure functions, any thread.

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"

namespace candor::quant {

// What a code means. Its bit 3 is the weight's sign, where signs are stored; its bit 2 IQ1's shift.
using GridValues = std::array<int8_t, 16>;

struct GridFormat {
  DType dtype = DType::kF32;
  int span = 8;         // weights of a vector: 8 or 4
  int index_bits = 8;   // of a vector's index, 8 at least
  int sign_bits = 0;    // stored for 8 weights; of 7, the eighth makes the number of minus signs even
  int scale_bits = 4;   // of s
  int n_groups = 8;     // sub-scales: 8 or 16
  int halvings = 0;     // of d
  int shift_group = 0;  // weights that share the index's top bit (IQ1's shift); 0: the index is the vector's alone
  const uint16_t* words = nullptr;  // [n_words()], codes of a vector's weights (code_of_word)
  GridValues values{};

  constexpr int word_bits() const { return shift_group > 0 ? index_bits - 1 : index_bits; }
  constexpr int n_words() const { return 1 << word_bits(); }
};

// A super-block taken apart, the same for all formats.
struct GridCodes {
  f16 d;
  uint8_t scales[16];  // s, [n_groups]
  uint16_t index[64];  // [256 / span]
  uint8_t signs[32];   // a bit for each weight, set where it is negative, the eighth of seven too
};

extern const std::array<uint16_t, 256> kIQ2_XXSWords;
extern const std::array<uint16_t, 512> kIQ2_XSWords;
extern const std::array<uint16_t, 1024> kIQ2_SWords;
extern const std::array<uint16_t, 256> kIQ3_XXSWords;
extern const std::array<uint16_t, 512> kIQ3_SWords;
extern const std::array<uint16_t, 2048> kIQ1Words;

// Values with their negatives at bit 3.
consteval GridValues signed_values(std::array<int8_t, 8> magnitudes) {
  GridValues values{};
  for (size_t i = 0; i < 8; ++i) {
    values[i] = magnitudes[i];
    values[i + 8] = static_cast<int8_t>(-magnitudes[i]);
  }
  return values;
}

// seven: the signs of the first seven of 8 weights.
inline uint8_t with_even_sign(uint32_t seven) {
  const auto parity = static_cast<uint32_t>(__builtin_popcount(seven)) & 1u;
  return static_cast<uint8_t>(seven | (parity << 7));
}

// Bytes of two s each, the low nibble first.
inline void take_scale_nibbles(const uint8_t* packed, int n_bytes, GridCodes& codes) {
  for (int i = 0; i < 2 * n_bytes; ++i) codes.scales[i] = (packed[i / 2] >> (4 * (i % 2))) & 15;
}
inline void put_scale_nibbles(const GridCodes& codes, int n_bytes, uint8_t* packed) {
  for (int i = 0; i < n_bytes; ++i)
    packed[i] = static_cast<uint8_t>(codes.scales[2 * i] | (codes.scales[2 * i + 1] << 4));
}

// Where the code of weight k stands in a vector's word: of 16 / span bits, those of even weights in the low byte, so
// that the words of two vectors, side by side, become groups of four weights by few operations.
constexpr int code_place(int span, int k) {
  return 8 * (k % 2) + 16 / span * (k / 2);
}
constexpr uint32_t code_of_word(int span, uint32_t word, int k) {
  return (word >> code_place(span, k)) & ((1u << (16 / span)) - 1u);
}

// dst: [256] f32.
void decode_grid(const GridFormat& format, const GridCodes& codes, float* dst);

// src: [256] f32. The nearest vectors under scales from the largest weights; no search over scales.
void encode_grid(const GridFormat& format, const float* src, GridCodes& codes);

template <class Block>
concept GridBlock = requires(const Block& block, GridCodes& codes, Block& built) {
  { Block::kGrid.words } -> std::convertible_to<const uint16_t*>;
  parse_grid(block, codes);
  build_grid(codes, built);
};

// The f16 d of a block.
template <GridBlock Block>
f16 grid_d(const Block& block) {
  return block.d;
}

// Whether d is finite: no code is damaged.
template <GridBlock Block>
bool is_sound(const Block& block) {
  constexpr f16 kExponent = 0x7c00;
  return (grid_d(block) & kExponent) != kExponent;
}

template <GridBlock Block>
void decode_block(const Block& block, float* dst) {
  GridCodes codes{};
  parse_grid(block, codes);
  decode_grid(Block::kGrid, codes, dst);
}

template <GridBlock Block>
void encode_block(const float* src, Block& block) {
  GridCodes codes{};
  encode_grid(Block::kGrid, src, codes);
  build_grid(codes, block);
}

}  // namespace candor::quant
