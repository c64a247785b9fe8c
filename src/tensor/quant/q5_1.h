#pragma once
// Q5_1: 32 elements in 24 bytes. d and m are f16; byte j of qs holds the low four bits of element j (low nibble) and of
// element j + 16 (high nibble); bit i of the little-endian word qh is the fifth bit of element i.
// Value = d * q + m, in f32, two roundings.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ5_1 {
  static constexpr DType kType = DType::kQ5_1;
  static constexpr std::string_view kName = "Q5_1";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .high_bits = 1, .has_min = true};
  static constexpr ScaleFields scale_fields() {
    return {.scale = offsetof(BlockQ5_1, d), .min = offsetof(BlockQ5_1, m)};
  }

  f16 d;
  f16 m;
  uint32_t qh;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

inline void decode_block(const BlockQ5_1& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  const uint32_t qh = block.qh;
  for (int j = 0; j < 16; ++j) {
    const int low = low_nibble(block.qs[j]) | static_cast<int>(((qh >> j) & 1u) << 4);
    const int high = high_nibble(block.qs[j]) | static_cast<int>(((qh >> (j + 16)) & 1u) << 4);
    dst[j] = d * static_cast<float>(low) + m;
    dst[j + 16] = d * static_cast<float>(high) + m;
  }
}

inline void encode_block(const float* src, BlockQ5_1& block) {
  const Range range = range_of({src, BlockQ5_1::kElements});
  const float d = (range.max - range.min) / 31.0f;
  const float inverse = inverse_or_zero(d);
  uint32_t qh = 0;
  block.d = f32_to_f16(d);
  block.m = f32_to_f16(range.min);
  for (int j = 0; j < 16; ++j) {
    const int low = trunc_clamped((src[j] - range.min) * inverse + 0.5f, 0, 31);
    const int high = trunc_clamped((src[j + 16] - range.min) * inverse + 0.5f, 0, 31);
    block.qs[j] = two_nibbles(low & 15, high & 15);
    qh |= static_cast<uint32_t>(low >> 4) << j;
    qh |= static_cast<uint32_t>(high >> 4) << (j + 16);
  }
  block.qh = qh;
}

inline void parse_block(const BlockQ5_1& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  add_fifth_bits(block.qh, dst.codes + 32 * b);
  dst.d[b] = block.d;
  dst.m[b] = block.m;
}

}  // namespace candor::quant
