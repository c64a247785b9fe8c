#pragma once
// Q5_0: 32 elements in 22 bytes. d is an f16 scale; byte j of qs holds the low four bits of element j (low nibble) and
// of element j + 16 (high nibble); bit i of the little-endian word qh is the fifth bit of element i.
// Value = d * (q - 16), in f32.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ5_0 {
  static constexpr DType kType = DType::kQ5_0;
  static constexpr std::string_view kName = "Q5_0";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .high_bits = 1, .offset = 16};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ5_0, d)}; }

  f16 d;
  uint32_t qh;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22);

inline void decode_block(const BlockQ5_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const uint32_t qh = block.qh;
  for (int j = 0; j < 16; ++j) {
    const int low = low_nibble(block.qs[j]) | static_cast<int>(((qh >> j) & 1u) << 4);
    const int high = high_nibble(block.qs[j]) | static_cast<int>(((qh >> (j + 16)) & 1u) << 4);
    dst[j] = d * static_cast<float>(low - 16);
    dst[j + 16] = d * static_cast<float>(high - 16);
  }
}

// The codes nearest to x for a scale that was chosen before.
inline void fill_block(const float* src, float d, BlockQ5_0& block) {
  const float inverse = inverse_or_zero(d);
  uint32_t qh = 0;
  block.d = f32_to_f16(d);
  for (int j = 0; j < 16; ++j) {
    const int low = trunc_clamped(src[j] * inverse + 16.5f, 0, 31);
    const int high = trunc_clamped(src[j + 16] * inverse + 16.5f, 0, 31);
    block.qs[j] = two_nibbles(low & 15, high & 15);
    qh |= static_cast<uint32_t>(low >> 4) << j;
    qh |= static_cast<uint32_t>(high >> 4) << (j + 16);
  }
  block.qh = qh;
}

// The element of largest magnitude becomes code 0, so that its sign has the extra step.
inline void encode_block(const float* src, BlockQ5_0& block) {
  fill_block(src, largest_magnitude({src, BlockQ5_0::kElements}) / -16.0f, block);
}

inline void parse_block(const BlockQ5_0& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  add_fifth_bits(block.qh, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

}  // namespace candor::quant
