#pragma once
// Q4_K: 256 elements in 144 bytes, 8 groups of 32. The 12 bytes of scales hold eight 6-bit scales and mins (see
// unpack_scale_min). Element e = 64 j + 32 s + l has its code in qs[32 j + l]: the low nibble for s = 0, the high one
// for s = 1; its group is 2 j + s. Value = (d * scale) * q - (dmin * min), in f32, in this order; d and dmin are f16.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ4_K {
  static constexpr DType kType = DType::kQ4_K;
  static constexpr std::string_view kName = "Q4_K";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kAffineSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 4,
                                           .has_min = true,
                                           .sub_scales = SubScales::kSixBitPairs,
                                           .n_groups = 8,
                                           .scale_bytes = 12};
  static constexpr ScaleFields scale_fields() {
    return {.scale = offsetof(BlockQ4_K, d), .min = offsetof(BlockQ4_K, dmin)};
  }

  f16 d;
  f16 dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144);

inline void decode_block(const BlockQ4_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin packed = unpack_scale_min(block.scales, g);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (int l = 0; l < 32; ++l) {
      const int q = (block.qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15;
      dst[32 * g + l] = scale * static_cast<float>(q) - min;
    }
  }
}

// The codes nearest to x for scales that were chosen before.
inline void fill_block(const float* src, const AffineLevels& levels, BlockQ4_K& block) {
  block = BlockQ4_K{};
  block.d = levels.d;
  block.dmin = levels.dmin;
  pack_scale_mins(levels.groups, block.scales);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int g = e / 32;
    uint8_t& byte = block.qs[32 * (g / 2) + e % 32];
    byte = static_cast<uint8_t>(byte | (affine_code(src[e], levels, g, 15) << (4 * (g % 2))));
  }
}

inline void encode_block(const float* src, BlockQ4_K& block) {
  fill_block(src, affine_levels({src, kSuperBlock}, 8, 15, 63), block);
}

inline void parse_block(const BlockQ4_K& block, UnitCodes& dst, int) {
  take_nibbles_of_256(block.qs, dst.codes);
  take_scale_mins(block.scales, dst);
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

}  // namespace candor::quant
