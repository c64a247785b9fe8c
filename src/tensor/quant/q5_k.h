#pragma once
// Q5_K: 256 elements in 176 bytes, 8 groups of 32. Scales and low four bits stand as in Q4_K; bit g of qh[l] is the
// fifth bit of element 32 g + l. Value = (d * scale) * q - (dmin * min), in f32, in this order; d and dmin are f16.

#include <cstddef>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ5_K {
  static constexpr int kElements = kSuperBlock;
  f16 d;
  f16 dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176);

inline void decode_block(const BlockQ5_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin packed = unpack_scale_min(block.scales, g);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (int l = 0; l < 32; ++l) {
      const int low = (block.qs[32 * (g / 2) + l] >> (4 * (g % 2))) & 15;
      const int q = low | (((block.qh[l] >> g) & 1) << 4);
      dst[32 * g + l] = scale * static_cast<float>(q) - min;
    }
  }
}

// The codes nearest to x for scales that were chosen before.
inline void fill_block(const float* src, const AffineLevels& levels, BlockQ5_K& block) {
  block = BlockQ5_K{};
  block.d = levels.d;
  block.dmin = levels.dmin;
  pack_scale_mins(levels.groups, block.scales);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int g = e / 32;
    const int q = affine_code(src[e], levels, g, 31);
    uint8_t& low = block.qs[32 * (g / 2) + e % 32];
    uint8_t& high = block.qh[e % 32];
    low = static_cast<uint8_t>(low | ((q & 15) << (4 * (g % 2))));
    high = static_cast<uint8_t>(high | ((q >> 4) << g));
  }
}

inline void encode_block(const float* src, BlockQ5_K& block) {
  fill_block(src, affine_levels({src, kSuperBlock}, 8, 31, 63), block);
}

}  // namespace candor::quant
