#pragma once
// TQ1_0 and TQ2_0: weights of BitNet and its kind, -1, 0 or 1 times one f16 d for 256 of them. Value = d * (q - 1).
// TQ1_0: 54 bytes: 48 bytes of five q each and 4 of four, then d. A byte is the fraction ceil(256 n / 243) of the
// number
//   n whose digits of base 3 are its q, the first the highest: q_i is the whole part of 3 (3^i byte mod 256) / 256. Of
//   the first 32 bytes byte m has elements m, m + 32, ...; of the next 16, 160 + m, 176 + m, ...; of the last four
//   240 + m, 244 + m, ...
// TQ2_0: 66 bytes: 64 bytes of four q, 2 bits each, the lowest first: of each 32 bytes byte m has elements m, m + 32,
//   m + 64 and m + 96; then d. (q of 3 means 2 d; encoders do not write it.)

#include <cmath>
#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

inline constexpr PackedFormat ternary_format(DType dtype) {
  return {.dtype = dtype,
          .is_super = true,
          .low_bits = 2,
          .offset = 1,
          .sub_scales = SubScales::kOnes,
          .n_groups = 8,
          .scale_bytes = 0};
}

struct __attribute__((packed)) BlockTQ1_0 {
  static constexpr DType kType = DType::kTQ1_0;
  static constexpr std::string_view kName = "TQ1_0";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = ternary_format(kType);
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockTQ1_0, d)}; }

  uint8_t qs[52];
  f16 d;
};
static_assert(sizeof(BlockTQ1_0) == 54);

struct __attribute__((packed)) BlockTQ2_0 {
  static constexpr DType kType = DType::kTQ2_0;
  static constexpr std::string_view kName = "TQ2_0";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kSymmetricSuperBlocks;
  static constexpr PackedFormat kPacked = ternary_format(kType);
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockTQ2_0, d)}; }

  uint8_t qs[64];
  f16 d;
};
static_assert(sizeof(BlockTQ2_0) == 66);

// The element whose q is digit i of byte m of TQ1_0.
constexpr int ternary_element(int m, int i) {
  if (m < 32) return m + 32 * i;
  return m < 48 ? 160 + (m - 32) + 16 * i : 240 + (m - 48) + 4 * i;
}
constexpr int ternary_digits(int m) {
  return m < 48 ? 5 : 4;
}

inline void parse_block(const BlockTQ1_0& block, UnitCodes& dst, int) {
  for (int m = 0; m < 52; ++m) {
    uint32_t rest = block.qs[m];
    for (int i = 0; i < ternary_digits(m); ++i, rest = (3 * rest) & 255u) {
      dst.codes[ternary_element(m, i)] = static_cast<uint8_t>((3 * rest) >> 8);
    }
  }
  dst.d[0] = block.d;
}

inline void parse_block(const BlockTQ2_0& block, UnitCodes& dst, int) {
  for (int g = 0; g < 8; ++g) take_fields(block.qs + g / 4 * 32, g % 4 * 2, 2, 32, dst.codes + 32 * g);
  dst.d[0] = block.d;
}

template <class Block>
requires(Block::kPacked.sub_scales == SubScales::kOnes) void decode_block(const Block& block, float* dst) {
  UnitCodes codes;
  parse_block(block, codes, 0);
  const float d = f16_to_f32(block.d);
  for (int k = 0; k < kSuperBlock; ++k) dst[k] = d * static_cast<float>(codes.codes[k] - 1);
}

// q of 256 weights whose largest magnitude is d.
inline void ternary_codes(const float* src, float d, uint8_t* codes) {
  const float inverse = inverse_or_zero(d);
  for (int k = 0; k < kSuperBlock; ++k) codes[k] = static_cast<uint8_t>(round_clamped(src[k] * inverse, -1, 1) + 1);
}

inline void encode_block(const float* src, BlockTQ1_0& block) {
  const float d = std::fabs(largest_magnitude({src, kSuperBlock}));
  uint8_t codes[kSuperBlock];
  ternary_codes(src, d, codes);
  block.d = f32_to_f16(d);
  for (int m = 0; m < 52; ++m) {
    uint32_t number = 0;
    for (int i = 0; i < 5; ++i) number = 3 * number + (i < ternary_digits(m) ? codes[ternary_element(m, i)] : 0u);
    block.qs[m] = static_cast<uint8_t>((256 * number + 242) / 243);
  }
}

inline void encode_block(const float* src, BlockTQ2_0& block) {
  const float d = std::fabs(largest_magnitude({src, kSuperBlock}));
  uint8_t codes[kSuperBlock];
  ternary_codes(src, d, codes);
  block = BlockTQ2_0{};
  block.d = f32_to_f16(d);
  for (int k = 0; k < kSuperBlock; ++k) {
    uint8_t& byte = block.qs[k / 128 * 32 + k % 32];
    byte = static_cast<uint8_t>(byte | (codes[k] << (k % 128 / 32 * 2)));
  }
}

}  // namespace candor::quant
