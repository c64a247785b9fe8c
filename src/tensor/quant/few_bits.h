#pragma once
// Q1_0 and Q2_0: one f16 d for a block of signs, or of 2-bit codes.
// Q1_0: 128 elements in 18 bytes: f16 d; bit k of the little-endian qs is set where element k is d, else it is -d.
// Q2_0: 64 elements in 18 bytes: f16 d; 2 bits a code, the lowest first. Value = d * (q - 1).

#include <cmath>
#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

struct __attribute__((packed)) BlockQ1_0 {
  static constexpr DType kType = DType::kQ1_0;
  static constexpr std::string_view kName = "Q1_0";
  static constexpr int kElements = 128;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 1, .offset = 1, .values = CodeValues::kSigns};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ1_0, d)}; }

  f16 d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ1_0) == 18);

struct __attribute__((packed)) BlockQ2_0 {
  static constexpr DType kType = DType::kQ2_0;
  static constexpr std::string_view kName = "Q2_0";
  static constexpr int kElements = 64;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 2, .offset = 1};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockQ2_0, d)}; }

  f16 d;
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ2_0) == 18);

inline int code_of(const BlockQ1_0& block, int k) {
  return (block.qs[k / 8] >> (k % 8)) & 1;
}
inline int code_of(const BlockQ2_0& block, int k) {
  return (block.qs[k / 4] >> (k % 4 * 2)) & 3;
}

inline void decode_block(const BlockQ1_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int k = 0; k < BlockQ1_0::kElements; ++k) dst[k] = code_of(block, k) != 0 ? d : -d;
}

inline void decode_block(const BlockQ2_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int k = 0; k < BlockQ2_0::kElements; ++k) dst[k] = d * static_cast<float>(code_of(block, k) - 1);
}

inline void encode_block(const float* src, BlockQ1_0& block) {
  block = BlockQ1_0{};
  float sum = 0.0f;
  for (int k = 0; k < BlockQ1_0::kElements; ++k) sum += std::fabs(src[k]);
  block.d = f32_to_f16(sum / BlockQ1_0::kElements);
  for (int k = 0; k < BlockQ1_0::kElements; ++k) {
    block.qs[k / 8] = static_cast<uint8_t>(block.qs[k / 8] | ((src[k] >= 0.0f ? 1 : 0) << (k % 8)));
  }
}

inline void encode_block(const float* src, BlockQ2_0& block) {
  block = BlockQ2_0{};
  const float d = std::fabs(largest_magnitude({src, BlockQ2_0::kElements}));
  block.d = f32_to_f16(d);
  const float inverse = inverse_or_zero(d);
  for (int k = 0; k < BlockQ2_0::kElements; ++k) {
    const int code = round_clamped(src[k] * inverse, -1, 2) + 1;
    block.qs[k / 4] = static_cast<uint8_t>(block.qs[k / 4] | (code << (k % 4 * 2)));
  }
}

// Block b of a unit: its d holds for all the 32-blocks that it covers.
template <class Block>
void parse_few_bits(const Block& block, UnitCodes& dst, int b) {
  constexpr int kN = Block::kElements;
  for (int k = 0; k < kN; ++k) dst.codes[kN * b + k] = static_cast<uint8_t>(code_of(block, k));
  for (int i = 0; i < kN / 32; ++i) dst.d[kN / 32 * b + i] = block.d;
}
inline void parse_block(const BlockQ1_0& block, UnitCodes& dst, int b) {
  parse_few_bits(block, dst, b);
}
inline void parse_block(const BlockQ2_0& block, UnitCodes& dst, int b) {
  parse_few_bits(block, dst, b);
}

}  // namespace candor::quant
