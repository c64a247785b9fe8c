#pragma once
// W8A8: a row of int8 codes behind one f32 scale of the whole row ("by channel"). Value = d * q, in f32. Products take
// activations with one scale a row too, so that all of k is one integer sum (docs/numerics.md). A type of our own: no
// GGUF number is known to others. Rows of n elements, a multiple of 32, take n + 4 bytes.

#include <cstddef>
#include <cstring>
#include <string_view>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockW8A8 {
  static constexpr DType kType = DType::kW8A8;
  static constexpr std::string_view kName = "W8A8";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kScaledRows;
  static constexpr ScaleFields scale_fields() { return {}; }
  static constexpr int kRowHeaderBytes = sizeof(float);

  static void decode_row(const std::byte* row, int64_t n, float* dst);
  static void encode_row(const float* src, int64_t n, std::byte* row);

  int8_t qs[32];
};
static_assert(sizeof(BlockW8A8) == 32);

// The longest row whose sum of products fits 32 bits: n * 128 * 127 < 2^31.
inline constexpr int64_t kMostW8A8Elements = 132096;

inline float row_scale(const std::byte* row) {
  float d;
  std::memcpy(&d, row, sizeof d);
  return d;
}

inline void BlockW8A8::decode_row(const std::byte* row, int64_t n, float* dst) {
  const float d = row_scale(row);
  const auto* codes = reinterpret_cast<const int8_t*>(row + sizeof d);
  for (int64_t i = 0; i < n; ++i) dst[i] = d * static_cast<float>(codes[i]);
}

// d = largest magnitude / 127; codes are rounded with its inverse, halves away from zero.
inline void BlockW8A8::encode_row(const float* src, int64_t n, std::byte* row) {
  const float d = std::fabs(largest_magnitude({src, static_cast<size_t>(n)})) / 127.0f;
  const float inverse = inverse_or_zero(d);
  std::memcpy(row, &d, sizeof d);
  auto* codes = reinterpret_cast<int8_t*>(row + sizeof d);
  for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<int8_t>(round_clamped(src[i] * inverse, -127, 127));
}

}  // namespace candor::quant
