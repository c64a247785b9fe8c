#pragma once
// Q4_1: 32 elements in 20 bytes. d and m are f16; byte j of qs holds element j in its low nibble and element j + 16 in
// its high nibble. Value = d * q + m, in f32, two roundings.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ4_1 {
  static constexpr DType kType = DType::kQ4_1;
  static constexpr std::string_view kName = "Q4_1";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .has_min = true};
  static constexpr ScaleFields scale_fields() {
    return {.scale = offsetof(BlockQ4_1, d), .min = offsetof(BlockQ4_1, m)};
  }

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

inline void parse_block(const BlockQ4_1& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
  dst.m[b] = block.m;
}

}  // namespace candor::quant
