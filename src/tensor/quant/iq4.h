#pragma once
// IQ4_NL and IQ4_XS: 4-bit codes that index a fixed table of 16 unevenly spaced values.
// IQ4_NL: 32 elements in 18 bytes; f16 d; byte j of qs holds element j (low nibble) and j + 16 (high nibble).
//   Value = d * table[q], in f32.
// IQ4_XS: 256 elements in 136 bytes, 8 groups of 32, each laid out as IQ4_NL's qs. The group's 6-bit scale, offset by
//   32, has its low four bits in a nibble of scales_l[g / 2] (low for even g) and its upper two in bits 2g..2g+1 of the
//   little-endian scales_h. Value = (d * (scale - 32)) * table[q], in f32, in this order.

#include <array>
#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

inline constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                      1,    13,   25,  38,  53,  69,  89,  113};

struct __attribute__((packed)) BlockIQ4_NL {
  static constexpr DType kType = DType::kIQ4_NL;
  static constexpr std::string_view kName = "IQ4_NL";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .values = CodeValues::kIq4};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ4_NL, d)}; }

  f16 d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

struct __attribute__((packed)) BlockIQ4_XS {
  static constexpr DType kType = DType::kIQ4_XS;
  static constexpr std::string_view kName = "IQ4_XS";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType,
                                           .is_super = true,
                                           .low_bits = 4,
                                           .values = CodeValues::kIq4,
                                           .sub_scales = SubScales::kSixBitsOf8,
                                           .n_groups = 8,
                                           .scale_bytes = 6};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ4_XS, d)}; }

  f16 d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// qs: 16 bytes; dst: [32] f32.
inline void decode_iq4_group(float scale, const uint8_t* qs, float* dst) {
  for (int j = 0; j < 16; ++j) {
    dst[j] = scale * static_cast<float>(kIq4Values[low_nibble(qs[j])]);
    dst[j + 16] = scale * static_cast<float>(kIq4Values[high_nibble(qs[j])]);
  }
}

// In [-32, 31].
inline int group_scale(const BlockIQ4_XS& block, int g) {
  const int low = (block.scales_l[g / 2] >> (4 * (g % 2))) & 15;
  const int high = (block.scales_h >> (2 * g)) & 3;
  return (low | (high << 4)) - 32;
}

inline void decode_block(const BlockIQ4_NL& block, float* dst) {
  decode_iq4_group(f16_to_f32(block.d), block.qs, dst);
}

inline void decode_block(const BlockIQ4_XS& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 8; ++g) {
    decode_iq4_group(d * static_cast<float>(group_scale(block, g)), block.qs + 16 * g, dst + 32 * g);
  }
}

// The nearest entry of the table; the lower one on a tie.
inline int nearest_iq4(float x) {
  int best = 0;
  for (int i = 1; i < 16; ++i) {
    const auto at = static_cast<size_t>(i);
    if (std::fabs(x - kIq4Values[at]) < std::fabs(x - kIq4Values[static_cast<size_t>(best)])) best = i;
  }
  return best;
}

inline void encode_iq4_group(const float* src, float scale, uint8_t* qs) {
  const float inverse = inverse_or_zero(scale);
  for (int j = 0; j < 16; ++j) qs[j] = two_nibbles(nearest_iq4(src[j] * inverse), nearest_iq4(src[j + 16] * inverse));
}

// The nearest codes by the scale, which is an f16.
inline void fill_block(const float* src, float scale, BlockIQ4_NL& block) {
  block.d = f32_to_f16(scale);
  encode_iq4_group(src, scale, block.qs);
}

// levels: of the 8 groups, each in [-32, 31].
inline void fill_block(const float* src, const SymmetricLevels& levels, BlockIQ4_XS& block) {
  block = BlockIQ4_XS{};
  block.d = levels.d;
  const float d = f16_to_f32(block.d);
  for (int g = 0; g < 8; ++g) {
    const int code = levels.scales[g] + 32;
    block.scales_l[g / 2] = static_cast<uint8_t>(block.scales_l[g / 2] | ((code & 15) << (4 * (g % 2))));
    block.scales_h = static_cast<uint16_t>(block.scales_h | ((code >> 4) << (2 * g)));
    encode_iq4_group(src + 32 * g, d * static_cast<float>(levels.scales[g]), block.qs + 16 * g);
  }
}

inline void encode_block(const float* src, BlockIQ4_NL& block) {
  const f16 d = f32_to_f16(largest_magnitude({src, BlockIQ4_NL::kElements}) / -127.0f);
  fill_block(src, f16_to_f32(d), block);
}

inline void encode_block(const float* src, BlockIQ4_XS& block) {
  float scales[8];
  for (size_t g = 0; g < 8; ++g) scales[g] = largest_magnitude({src + 32 * g, 32}) / -127.0f;
  SymmetricLevels levels;
  levels.d = f32_to_f16(largest_magnitude(scales) / -32.0f);
  const float inverse = inverse_or_zero(f16_to_f32(levels.d));
  for (size_t g = 0; g < 8; ++g) levels.scales[g] = round_clamped(scales[g] * inverse, -32, 31);
  fill_block(src, levels, block);
}

inline void parse_block(const BlockIQ4_XS& block, UnitCodes& dst, int) {
  for (int g = 0; g < 8; ++g) take_nibbles_of_32(block.qs + 16 * g, dst.codes + 32 * g);
  for (int g = 0; g < 8; ++g) dst.scales[g] = static_cast<uint8_t>(group_scale(block, g) + 32);
  dst.d[0] = block.d;
}

inline void parse_block(const BlockIQ4_NL& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.d;
}

}  // namespace candor::quant
