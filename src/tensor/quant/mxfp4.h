#pragma once
// MXFP4 (OCP Microscaling Formats v1.0): 32 elements in 17 bytes. e is a shared E8M0 exponent; byte j of qs holds the
// E2M1 code of element j (low nibble) and j + 16 (high nibble). The table holds twice the E2M1 values, so the scale is
// half the E8M0 one: 2^(e - 128), subnormal in f32 for e < 2 (and so zero where the thread flushes subnormals).
// Value = scale * table[q], in f32. e = 255 is read as a number, not as NaN, as GGUF files have it.

#include <array>
#include <bit>
#include <cstddef>
#include <string_view>

#include "tensor/quant/block_math.h"
#include "tensor/quant/unit_codes.h"

namespace candor::quant {

inline constexpr std::array<int8_t, 16> kFp4TwiceValues = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

struct __attribute__((packed)) BlockMXFP4 {
  static constexpr DType kType = DType::kMXFP4;
  static constexpr std::string_view kName = "MXFP4";
  static constexpr int kElements = 32;
  static constexpr KernelFamily kFamily = KernelFamily::kBlocks;
  static constexpr PackedFormat kPacked = {.dtype = kType, .low_bits = 4, .values = CodeValues::kFp4, .scale_bytes = 1};
  static constexpr ScaleFields scale_fields() { return {}; }  // every exponent is a number

  uint8_t e;
  uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17);

// 2^(e - 128).
inline float half_e8m0(uint8_t e) {
  const uint32_t bits = e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

inline void decode_block(const BlockMXFP4& block, float* dst) {
  const float scale = half_e8m0(block.e);
  for (int j = 0; j < 16; ++j) {
    dst[j] = scale * static_cast<float>(kFp4TwiceValues[low_nibble(block.qs[j])]);
    dst[j + 16] = scale * static_cast<float>(kFp4TwiceValues[high_nibble(block.qs[j])]);
  }
}

// The nearest entry of the table; the lowest code on a tie.
inline int nearest_fp4(float x) {
  int best = 0;
  for (int i = 1; i < 16; ++i) {
    const auto at = static_cast<size_t>(i);
    if (std::fabs(x - kFp4TwiceValues[at]) < std::fabs(x - kFp4TwiceValues[static_cast<size_t>(best)])) best = i;
  }
  return best;
}

// The nearest codes by the exponent e.
inline void fill_block(const float* src, uint8_t e, BlockMXFP4& block) {
  block.e = e;
  const double inverse = 1.0 / static_cast<double>(half_e8m0(e));
  for (int j = 0; j < 16; ++j) {
    block.qs[j] = two_nibbles(nearest_fp4(static_cast<float>(src[j] * inverse)),
                              nearest_fp4(static_cast<float>(src[j + 16] * inverse)));
  }
}

// The exponent puts the largest magnitude into [4, 8), of which up to 6 can be said.
inline void encode_block(const float* src, BlockMXFP4& block) {
  const float largest = std::fabs(largest_magnitude({src, BlockMXFP4::kElements}));
  const int exponent = largest > 0.0f ? std::ilogb(largest) - 2 + 127 : 0;
  fill_block(src, static_cast<uint8_t>(std::clamp(exponent, 0, 254)), block);
}

inline void parse_block(const BlockMXFP4& block, UnitCodes& dst, int b) {
  take_nibbles_of_32(block.qs, dst.codes + 32 * b);
  dst.d[b] = block.e;
}

}  // namespace candor::quant
