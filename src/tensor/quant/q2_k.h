#pragma once
// Q2_K: 256 elements in 84 bytes, 16 groups of 16. Byte g of scales holds the group's 4-bit scale (low nibble) and
// 4-bit min (high nibble). Element e = 128 h + 32 s + l has its code in bits 2s..2s+1 of qs[32 h + l].
// Value = (d * scale) * q - (dmin * min), in f32, in this order; d and dmin are f16.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ2_K {
  static constexpr DType kType = DType::kQ2_K;
  static constexpr std::string_view kName = "Q2_K";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kAffineSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 2,
                                           .has_min = true,
                                           .sub_scales = SubScales::kNibbles,
                                           .n_groups = 16,
                                           .scale_bytes = 16};
  static constexpr ScaleFields scale_fields() {
    return {.scale = offsetof(BlockQ2_K, d), .min = offsetof(BlockQ2_K, dmin)};
  }

  uint8_t scales[16];
  uint8_t qs[64];
  f16 d;
  f16 dmin;
};
static_assert(sizeof(BlockQ2_K) == 84);

inline void decode_block(const BlockQ2_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int e = 0; e < kSuperBlock; ++e) {
    const uint8_t packed = block.scales[e / 16];
    const int shift = 2 * (e / 32 % 4);
    const int q = (block.qs[32 * (e / 128) + e % 32] >> shift) & 3;
    const float scale = d * static_cast<float>(low_nibble(packed));
    const float min = dmin * static_cast<float>(high_nibble(packed));
    dst[e] = scale * static_cast<float>(q) - min;
  }
}

// The codes nearest to x for scales that were chosen before.
inline void fill_block(const float* src, const AffineLevels& levels, BlockQ2_K& block) {
  block = BlockQ2_K{};
  block.d = levels.d;
  block.dmin = levels.dmin;
  for (int g = 0; g < 16; ++g) block.scales[g] = two_nibbles(levels.groups[g].scale, levels.groups[g].min);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int q = affine_code(src[e], levels, e / 16, 3);
    uint8_t& byte = block.qs[32 * (e / 128) + e % 32];
    byte = static_cast<uint8_t>(byte | (q << (2 * (e / 32 % 4))));
  }
}

inline void encode_block(const float* src, BlockQ2_K& block) {
  fill_block(src, affine_levels({src, kSuperBlock}, 16, 3, 15), block);
}

inline void parse_block(const BlockQ2_K& block, UnitCodes& dst, int) {
  for (int g = 0; g < 8; ++g) take_fields(block.qs + g / 4 * 32, g % 4 * 2, 2, 32, dst.codes + 32 * g);
  for (int g = 0; g < 16; ++g) {
    dst.scales[g] = low_nibble(block.scales[g]);
    dst.mins[g] = high_nibble(block.scales[g]);
  }
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

}  // namespace candor::quant
