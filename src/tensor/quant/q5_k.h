#pragma once
// Q5_K: 256 elements in 176 bytes, 8 groups of 32. Scales and low four bits are laid out as in Q4_K; bit g of qh[l] is
// the fifth bit of element 32 g + l. Value = (d * scale) * q - (dmin * min), in f32, in this order; d and dmin are f16.
// Products read the packed form instead: kernels/generic/unpack.inl.h.

#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ5_K {
  static constexpr DType kType = DType::kQ5_K;
  static constexpr std::string_view kName = "Q5_K";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kAffineSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 4,
                                           .high_bits = 1,
                                           .has_min = true,
                                           .sub_scales = SubScales::kSixBitPairs,
                                           .n_groups = 8,
                                           .scale_bytes = 12};
  static constexpr ScaleFields scale_fields() {
    return {.scale = offsetof(BlockQ5_K, d), .min = offsetof(BlockQ5_K, dmin)};
  }

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

inline void parse_block(const BlockQ5_K& block, UnitCodes& dst, int) {
  take_nibbles_of_256(block.qs, dst.codes);
  for (int g = 0; g < 8; ++g) add_fields(block.qh, g, 1, 4, dst.codes + 32 * g);
  take_scale_mins(block.scales, dst);
  dst.d[0] = block.d;
  dst.m[0] = block.dmin;
}

}  // namespace candor::quant
