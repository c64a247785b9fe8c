#pragma once
// Q4_0: 32 elements in 18 bytes. d is an f16 scale; byte j of qs holds element j in its low nibble and element j + 16
// in its high nibble. Value = d * (q - 8), in f32.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ4_0 {
  static constexpr DType kType = DType::kQ4_0;
  static constexpr std::string_view kName = "Q4_0";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .offset = 8};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ4_0, d)}; }

  f16 d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

inline void decode_block(const BlockQ4_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int j = 0; j < 16; ++j) {
    dst[j] = d * static_cast<float>(low_nibble(block.qs[j]) - 8);
    dst[j + 16] = d * static_cast<float>(high_nibble(block.qs[j]) - 8);
  }
}

// The codes nearest to x for a scale that was chosen before.
inline void fill_block(const float* src, float d, BlockQ4_0& block) {
  const float inverse = inverse_or_zero(d);
  block.d = f32_to_f16(d);
  for (int j = 0; j < 16; ++j) {
    const int low = trunc_clamped(src[j] * inverse + 8.5f, 0, 15);
    const int high = trunc_clamped(src[j + 16] * inverse + 8.5f, 0, 15);
    block.qs[j] = two_nibbles(low, high);
  }
}

// The element of largest magnitude becomes code 0, so that its sign has the extra step.
inline void encode_block(const float* src, BlockQ4_0& block) {
  fill_block(src, largest_magnitude({src, BlockQ4_0::kElements}) / -8.0f, block);
}

inline void parse_block(const BlockQ4_0& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

}  // namespace candor::quant
