#pragma once
// Q4_1: 32 elements in 20 bytes. d and m are f16; byte j of qs holds element j in its low nibble and element j + 16 in
// its high nibble. Value = d * q + m, in f32, two roundings.

#include <cstddef>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ4_1 {
  static constexpr int kElements = 32;
  f16 d;
  f16 m;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

inline void decode_block(const BlockQ4_1& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int j = 0; j < 16; ++j) {
    dst[j] = d * static_cast<float>(low_nibble(block.qs[j])) + m;
    dst[j + 16] = d * static_cast<float>(high_nibble(block.qs[j])) + m;
  }
}

inline void encode_block(const float* src, BlockQ4_1& block) {
  const Range range = range_of({src, BlockQ4_1::kElements});
  const float d = (range.max - range.min) / 15.0f;
  const float inverse = inverse_or_zero(d);
  block.d = f32_to_f16(d);
  block.m = f32_to_f16(range.min);
  for (int j = 0; j < 16; ++j) {
    const int low = trunc_clamped((src[j] - range.min) * inverse + 0.5f, 0, 15);
    const int high = trunc_clamped((src[j + 16] - range.min) * inverse + 0.5f, 0, 15);
    block.qs[j] = two_nibbles(low, high);
  }
}

}  // namespace candor::quant
