#pragma once
// Q3_K: 256 elements in 110 bytes, 16 groups of 16. Element e = 128 h + 32 s + l has the low two bits of its code in
// bits 2s..2s+1 of qs[32 h + l]; bit 4 h + s of hmask[l] is the third bit, and 4 is subtracted where it is clear.
// Group scales are 6-bit, offset by 32: the low four bits of scale g are a nibble of scales[g % 8] (low for g < 8, else
// high), the upper two are bits 2 (g / 4) .. +1 of scales[8 + g % 4].
// Value = (d * (scale - 32)) * q, in f32, in this order; d is f16.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ3_K {
  static constexpr DType kType = DType::kQ3_K;
  static constexpr std::string_view kName = "Q3_K";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 2,
                                           .high_bits = 1,
                                           .offset = 4,
                                           .sub_scales = SubScales::kSixBitsOf16,
                                           .n_groups = 16,
                                           .scale_bytes = 12};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ3_K, d)}; }

  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  f16 d;
};
static_assert(sizeof(BlockQ3_K) == 110);

// In [-32, 31].
inline int group_scale(const BlockQ3_K& block, int g) {
  const int low = g < 8 ? low_nibble(block.scales[g]) : high_nibble(block.scales[g - 8]);
  const int high = (block.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
  return (low | (high << 4)) - 32;
}

inline void decode_block(const BlockQ3_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int h = e / 128;
    const int s = e / 32 % 4;
    const int l = e % 32;
    const int low = (block.qs[32 * h + l] >> (2 * s)) & 3;
    const int offset = ((block.hmask[l] >> (4 * h + s)) & 1) != 0 ? 0 : 4;
    const float scale = d * static_cast<float>(group_scale(block, e / 16));
    dst[e] = scale * static_cast<float>(low - offset);
  }
}

inline void set_group_scale(BlockQ3_K& block, int g, int scale) {
  const int code = scale + 32;
  uint8_t& low = block.scales[g % 8];
  uint8_t& high = block.scales[8 + g % 4];
  low = static_cast<uint8_t>(low | ((code & 15) << (g < 8 ? 0 : 4)));
  high = static_cast<uint8_t>(high | ((code >> 4) << (2 * (g / 4))));
}

// The codes nearest to x for scales that were chosen before, each in [-32, 31].
inline void fill_block(const float* src, const SymmetricLevels& levels, BlockQ3_K& block) {
  block = BlockQ3_K{};
  block.d = levels.d;
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 16; ++g) set_group_scale(block, g, levels.scales[g]);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int group = e / 16;
    const float inverse = inverse_or_zero(d * static_cast<float>(levels.scales[group]));
    const int q = round_clamped(src[e] * inverse, -4, 3) + 4;
    uint8_t& byte = block.qs[32 * (e / 128) + e % 32];
    byte = static_cast<uint8_t>(byte | ((q & 3) << (2 * (e / 32 % 4))));
    block.hmask[e % 32] = static_cast<uint8_t>(block.hmask[e % 32] | ((q >> 2) << (e / 32)));
  }
}

inline void encode_block(const float* src, BlockQ3_K& block) {
  fill_block(src, symmetric_levels(src, 4, 32), block);
}

inline void parse_block(const BlockQ3_K& block, UnitCodes& dst, int) {
  for (int g = 0; g < 8; ++g) {
    take_fields(block.qs + g / 4 * 32, g % 4 * 2, 2, 32, dst.codes + 32 * g);
    add_fields(block.hmask, g, 1, 2, dst.codes + 32 * g);
  }
  for (int g = 0; g < 16; ++g) dst.scales[g] = static_cast<uint8_t>(group_scale(block, g) + 32);
  dst.d[0] = block.d;
}

}  // namespace candor::quant
