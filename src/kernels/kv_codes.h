#pragma once
// K and V as codes. What multiplies them is integers of 16 bits at most kMostWord large. Those of 4 bits
// (KvFormat::kQ4) are of rotated heads. A head is rotated by a Hadamard matrix first, which spreads what few dims have
// over all of them (Ashkboos et al., "QuaRot", 2024); then each 32 dims of a token share a scale, f16(amax / 127), and
// a number becomes the nearest of 16 levels times it. The levels are those that err least for numbers as rotation
// leaves them, near to normal (S. Lloyd, "Least squares quantization in PCM", 1982). Order: numerics.md, "Attention".

#include <bit>
#include <cstdint>

namespace candor::kernels {

inline constexpr float kMostWord = 32639.0f;  // 127 * 256 + 127: 256 times an int8 and an int8 hold it
inline constexpr float kWordUnit = 1.0f / kMostWord;

// A row of 16 for each of 16 numbers: 1, or -1 where i and j have an odd number of bits in common.
struct HadamardRows {
  alignas(64) float rows[16][16];
};
constexpr HadamardRows make_hadamard_rows() {
  HadamardRows all{};
  for (uint32_t i = 0; i < 16; ++i) {
    for (uint32_t j = 0; j < 16; ++j) all.rows[i][j] = std::popcount(i & j) % 2 == 0 ? 1.0f : -1.0f;
  }
  return all;
}
inline constexpr HadamardRows kHadamard16 = make_hadamard_rows();

// 1 / sqrt(n) for a power of two, rounded.
constexpr float rotation_norm(int32_t n) {
  float norm = 1.0f;
  for (; n >= 4; n /= 4) norm *= 0.5f;
  return n == 2 ? norm * 0.70710678f : norm;
}

// int8 by code; from 8 on the negative ones.
inline constexpr int8_t kQ4Levels[16] = {6, 19, 32, 46, 61, 78, 98, 124, -6, -19, -32, -46, -61, -78, -98, -124};
// The code of a magnitude in units of the scale: the level that is nearest.
constexpr int32_t q4_level_of(float ratio) {
  constexpr float kBorders[7] = {12.5f, 25.5f, 39.0f, 53.5f, 69.5f, 88.0f, 111.0f};
  int32_t level = 0;
  for (const float border : kBorders) level += ratio > border ? 1 : 0;
  return level;
}

}  // namespace candor::kernels
