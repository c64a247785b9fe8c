#pragma once
// FP4: 128 elements in 76 bytes: an f32 scale d, 8 scales E4M3 without a sign, of 16 elements each, and 128 codes E2M1
// (OCP Microscaling Formats v1.0). Byte j of qs holds the codes of elements 2 j (low nibble) and 2 j + 1 (high nibble).
// Value = d * (code * scale), in f32; code * scale has 6 significant bits and so is exact. A type of our own for NVFP4,
// whose files keep codes, scales and the factor of a matrix in tensors of their own (model/hub/hub_nvfp4.h) or blocks
// of 64 with the factor beside them (GGUF's type 40).
//
// A code times its scale as f16 (fp8.h) is 2^-8 of code * scale, a bf16: so kernels widen it, and multiply by 256 d.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/fp8.h"
#include "tensor/quant/mxfp4.h"

namespace candor::quant {

inline constexpr std::array<float, 16> kE2M1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
inline constexpr float kLargestE2M1 = 6.0f;

struct __attribute__((packed)) BlockFP4 {
  static constexpr DType kType = DType::kFP4;
  static constexpr std::string_view kName = "FP4";
  static constexpr int kElements = 128;
  static constexpr int kGroup = 16;  // elements of a scale
  static constexpr KernelFamily kFamily = KernelFamily::kFloatBlocks;
  static constexpr ScaleFields scale_fields() { return {}; }  // no f16

  float d;
  uint8_t scales[8];
  uint8_t qs[64];
};
static_assert(sizeof(BlockFP4) == 76);

// Whether every number that it means is one, and products with it are.
inline bool is_sound(const BlockFP4& block) {
  bool is_bad = !is_fp8_scale(block.d);
  for (const uint8_t scale : block.scales) is_bad |= scale >= kE4M3Magnitude;
  return !is_bad;
}

inline void decode_block(const BlockFP4& block, float* dst) {
  for (int j = 0; j < BlockFP4::kElements; ++j) {
    const int pair = block.qs[j / 2];
    const float code = kE2M1Values[static_cast<size_t>(j % 2 == 0 ? pair & 15 : pair >> 4)];
    dst[j] = block.d * (code * e4m3_to_f32(block.scales[j / BlockFP4::kGroup]));
  }
}

// d = largest magnitude / (6 * 448), a group's scale its own largest / (6 d); codes are the nearest.
inline void encode_block(const float* src, BlockFP4& block) {
  const float d = std::fabs(largest_magnitude({src, BlockFP4::kElements})) / (kLargestE2M1 * kLargestE4M3);
  const float inverse = inverse_or_zero(d);
  block.d = d;
  for (int g = 0; g < 8; ++g) {
    const float* from = src + g * BlockFP4::kGroup;
    const float largest = std::fabs(largest_magnitude({from, BlockFP4::kGroup})) * inverse;
    block.scales[g] = f32_to_e4m3(largest / kLargestE2M1);
    const float of_scale = 2.0f * inverse * inverse_or_zero(e4m3_to_f32(block.scales[g]));
    for (int i = 0; i < BlockFP4::kGroup; i += 2) {
      block.qs[g * 8 + i / 2] = two_nibbles(nearest_fp4(from[i] * of_scale), nearest_fp4(from[i + 1] * of_scale));
    }
  }
}

}  // namespace candor::quant
