#pragma once
// Q8_0: 32 elements in 34 bytes. d is an f16 scale, qs signed bytes in element order. Value = d * q, in f32.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ8_0 {
  static constexpr DType kType = DType::kQ8_0;
  static constexpr std::string_view kName = "Q8_0";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 8, .offset = 128};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ8_0, d)}; }

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

inline void parse_block(const BlockQ8_0& block, UnitCodes& dst, int b) {
  const auto* codes = reinterpret_cast<const uint8_t*>(block.qs);
  for (int e = 0; e < 32; e += 8) store_word(dst.codes + 32 * b + e, load_word(codes + e) ^ (kEachByte << 7));
  dst.d[b] = block.d;
}

}  // namespace candor::quant
