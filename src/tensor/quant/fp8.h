#pragma once
// FP8: 128 elements in 132 bytes, an f32 scale d and 128 codes E4M3 (OCP 8-bit Floating Point Specification, "FN": no
// infinity, 0x7f and 0xff are NaN). Value = d * code, in f32. A type of our own for what folders keep as codes with
// scales of blocks, channels or tensors (model/hub/hub_fp8.h): a file of two tensors as one.
//
// A code's bits, its exponent and fraction moved to where f16 has them, are an f16 of 2^-8 times its value, its
// subnormals f16's: so kernels widen it, and multiply by 256 d.

#include <bit>
#include <limits>
#include <string_view>

#include "tensor/quant/block_math.h"

namespace candor::quant {

struct __attribute__((packed)) BlockFP8 {
  static constexpr DType kType = DType::kFP8;
  static constexpr std::string_view kName = "FP8";
  static constexpr int kElements = 128;
  static constexpr KernelFamily kFamily = KernelFamily::kFloatBlocks;
  static constexpr ScaleFields scale_fields() { return {}; }  // no f16

  float d;
  uint8_t qs[128];
};
static_assert(sizeof(BlockFP8) == 132);

inline constexpr float kE4M3Scale = 256.0f;    // of a code's value to that of its f16
inline constexpr float kLargestE4M3 = 448.0f;
inline constexpr float kMostFp8Scale = 0x1p100f;  // either way from 1: far from where f32 ends, also times 256
inline constexpr uint8_t kE4M3Magnitude = 0x7f;

// Of 2^-8 times its value; of a NaN a number.
constexpr f16 e4m3_as_f16(uint8_t code) {
  return static_cast<f16>((code & 0x80) << 8 | (code & kE4M3Magnitude) << 7);
}
inline float e4m3_to_f32(uint8_t code) {
  if ((code & kE4M3Magnitude) == kE4M3Magnitude) return std::numeric_limits<float>::quiet_NaN();
  return f16_to_f32(e4m3_as_f16(code)) * kE4M3Scale;
}

// To nearest, halves to even; what is larger than the largest becomes it, NaN too.
inline uint8_t f32_to_e4m3(float x) {
  constexpr float kLeastNormal = 0x1p-6f;
  constexpr float kOfStep = 0x1p14f;  // the f32 whose last bit is a subnormal code's
  const auto sign = static_cast<uint8_t>(std::bit_cast<uint32_t>(x) >> 24 & 0x80u);
  const float magnitude = std::fabs(x);
  if (!(magnitude < kLargestE4M3)) return sign | 0x7e;
  uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  if (magnitude < kLeastNormal) {
    bits = std::bit_cast<uint32_t>(magnitude + kOfStep) - std::bit_cast<uint32_t>(kOfStep);
  } else {
    constexpr uint32_t kRebias = (127 - 7) << 3;
    bits = ((bits + 0x7ffff + (bits >> 20 & 1)) >> 20) - kRebias;
  }
  return static_cast<uint8_t>(sign | bits);
}

inline bool is_fp8_scale(float scale) {
  const uint32_t d = std::bit_cast<uint32_t>(scale) & 0x7fffffffu;
  constexpr auto kMost = std::bit_cast<uint32_t>(kMostFp8Scale);
  constexpr auto kLeast = std::bit_cast<uint32_t>(1.0f / kMostFp8Scale);
  return d == 0 || (d >= kLeast && d <= kMost);
}

// Whether every number that it means is one, and products with it are.
inline bool is_sound(const BlockFP8& block) {
  bool is_nan = false;
  for (const uint8_t code : block.qs) is_nan |= (code & kE4M3Magnitude) == kE4M3Magnitude;
  return !is_nan && is_fp8_scale(block.d);
}

inline void decode_block(const BlockFP8& block, float* dst) {
  for (int j = 0; j < BlockFP8::kElements; ++j) dst[j] = block.d * e4m3_to_f32(block.qs[j]);
}

// d = largest magnitude / 448; codes are rounded with its inverse.
inline void encode_block(const float* src, BlockFP8& block) {
  const float d = std::fabs(largest_magnitude({src, BlockFP8::kElements})) / kLargestE4M3;
  const float inverse = inverse_or_zero(d);
  block.d = d;
  for (int j = 0; j < BlockFP8::kElements; ++j) block.qs[j] = f32_to_e4m3(src[j] * inverse);
}

}  // namespace candor::quant
