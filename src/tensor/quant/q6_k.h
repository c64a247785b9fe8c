#pragma once
// Q6_K: 256 elements in 210 bytes, 16 groups of 16 with signed 8-bit scales. Element e = 128 h + 32 s + l has the low
// four bits of its code in ql[64 h + 32 (s % 2) + l] (low nibble for s < 2, else high) and the upper two in bits
// 2s..2s+1 of qh[32 h + l]. Value = (d * scale) * (q - 32), in f32, in this order; d is f16.

#include <cstddef>
#include <cstring>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ6_K {
  static constexpr DType kType = DType::kQ6_K;
  static constexpr std::string_view kName = "Q6_K";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 4,
                                           .high_bits = 2,
                                           .offset = 32,
                                           .sub_scales = SubScales::kBytes,
                                           .n_groups = 16,
                                           .scale_bytes = 16};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ6_K, d)}; }

  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  f16 d;
};
static_assert(sizeof(BlockQ6_K) == 210);

inline void decode_block(const BlockQ6_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int h = e / 128;
    const int s = e / 32 % 4;
    const int l = e % 32;
    const int low = (block.ql[64 * h + 32 * (s % 2) + l] >> (4 * (s / 2))) & 15;
    const int high = (block.qh[32 * h + l] >> (2 * s)) & 3;
    const int group = e / 16;
    const float scale = d * static_cast<float>(block.scales[group]);
    dst[e] = scale * static_cast<float>((low | (high << 4)) - 32);
  }
}

// The codes nearest to x for scales that were chosen before, each in [-128, 127].
inline void fill_block(const float* src, const SymmetricLevels& levels, BlockQ6_K& block) {
  block = BlockQ6_K{};
  block.d = levels.d;
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 16; ++g) block.scales[g] = static_cast<int8_t>(levels.scales[g]);
  for (int e = 0; e < kSuperBlock; ++e) {
    const int h = e / 128;
    const int s = e / 32 % 4;
    const int l = e % 32;
    const int group = e / 16;
    const float inverse = inverse_or_zero(d * static_cast<float>(block.scales[group]));
    const int q = round_clamped(src[e] * inverse, -32, 31) + 32;
    uint8_t& low = block.ql[64 * h + 32 * (s % 2) + l];
    uint8_t& high = block.qh[32 * h + l];
    low = static_cast<uint8_t>(low | ((q & 15) << (4 * (s / 2))));
    high = static_cast<uint8_t>(high | ((q >> 4) << (2 * s)));
  }
}

inline void encode_block(const float* src, BlockQ6_K& block) {
  fill_block(src, symmetric_levels(src, 32, 128), block);
}

inline void parse_block(const BlockQ6_K& block, UnitCodes& dst, int) {
  for (int g = 0; g < 8; ++g) {
    const int h = g / 4;
    const int s = g % 4;
    take_fields(block.ql + 64 * h + 32 * (s % 2), s / 2 * 4, 4, 32, dst.codes + 32 * g);
    add_fields(block.qh + 32 * h, 2 * s, 2, 4, dst.codes + 32 * g);
  }
  std::memcpy(dst.scales, block.scales, 16);
  dst.d[0] = block.d;
}

}  // namespace candor::quant
