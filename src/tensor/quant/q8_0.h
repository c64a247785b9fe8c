#pragma once
// Q8_0: 32 elements in 34 bytes. d is an f16 scale, qs signed bytes in element order. Value = d * q, in f32.

#include <cstddef>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ8_0 {
  static constexpr int kElements = 32;
  f16 d;
  int8_t qs[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

inline void decode_block(const BlockQ8_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < BlockQ8_0::kElements; ++j) dst[j] = d * static_cast<float>(block.qs[j]);
}

// d = largest magnitude / 127; codes are rounded with the unrounded d, halves away from zero.
inline void encode_block(const float* src, BlockQ8_0& block) {
  const float d = std::fabs(largest_magnitude({src, BlockQ8_0::kElements})) / 127.0f;
  const float inverse = inverse_or_zero(d);
  block.d = f32_to_f16(d);
  for (int j = 0; j < BlockQ8_0::kElements; ++j) {
    block.qs[j] = static_cast<int8_t>(round_clamped(src[j] * inverse, -127, 127));
  }
}

}  // namespace candor::quant
