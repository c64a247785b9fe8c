#pragma once
// IQ3_XXS and IQ3_S: vectors of 4 magnitudes (tensor/quant/grid.h).
// IQ3_XXS: 256 elements in 98 bytes: f16 d; 64 indices; for each 32, 32 bits: four times seven signs, the lowest first,
//   and above them s. Magnitudes {4, 12, 20, 28, 36, 44, 52, 62}; value (d / 4 * (2 s + 1)) * magnitude.
// IQ3_S: 110 bytes: f16 d; the 8 low bits of 64 indices; eight bytes with the high bits of eight; 32 bytes of signs;
//   four bytes with two s. Magnitudes {1, 3, ... 15}; value (d * (2 s + 1)) * magnitude.

#include <cstddef>
#include <string_view>

#include "tensor/quant/grid.h"

namespace candor::quant {

struct __attribute__((packed)) BlockIQ3_XXS {
  static constexpr DType kType = DType::kIQ3_XXS;
  static constexpr std::string_view kName = "IQ3_XXS";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .span = 4,
                                       .sign_bits = 7,
                                       .halvings = 2,
                                       .words = kIQ3_XXSWords.data(),
                                       .values = signed_values({4, 12, 20, 28, 36, 44, 52, 62})};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ3_XXS, d)}; }

  f16 d;
  uint8_t qs[64];
  uint32_t signs[8];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

struct __attribute__((packed)) BlockIQ3_S {
  static constexpr DType kType = DType::kIQ3_S;
  static constexpr std::string_view kName = "IQ3_S";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .span = 4,
                                       .index_bits = 9,
                                       .sign_bits = 8,
                                       .words = kIQ3_SWords.data(),
                                       .values = signed_values({1, 3, 5, 7, 9, 11, 13, 15})};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ3_S, d)}; }

  f16 d;
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(BlockIQ3_S) == 110);

inline void parse_grid(const BlockIQ3_XXS& block, GridCodes& codes) {
  codes.d = block.d;
  for (int i = 0; i < 64; ++i) codes.index[i] = block.qs[i];
  for (int g = 0; g < 8; ++g) {
    const uint32_t signs = block.signs[g];
    codes.scales[g] = static_cast<uint8_t>(signs >> 28);
    for (int i = 0; i < 4; ++i) codes.signs[4 * g + i] = with_even_sign((signs >> (7 * i)) & 127u);
  }
}

inline void build_grid(const GridCodes& codes, BlockIQ3_XXS& block) {
  block.d = codes.d;
  for (int i = 0; i < 64; ++i) block.qs[i] = static_cast<uint8_t>(codes.index[i]);
  for (int g = 0; g < 8; ++g) {
    uint32_t signs = static_cast<uint32_t>(codes.scales[g]) << 28;
    for (int i = 0; i < 4; ++i) signs |= (codes.signs[4 * g + i] & 127u) << (7 * i);
    block.signs[g] = signs;
  }
}

inline void parse_grid(const BlockIQ3_S& block, GridCodes& codes) {
  codes.d = block.d;
  for (int i = 0; i < 64; ++i) {
    codes.index[i] = static_cast<uint16_t>(block.qs[i] | (((block.qh[i / 8] >> (i % 8)) & 1u) << 8));
  }
  for (int i = 0; i < 32; ++i) codes.signs[i] = block.signs[i];
  take_scale_nibbles(block.scales, 4, codes);
}

inline void build_grid(const GridCodes& codes, BlockIQ3_S& block) {
  block = BlockIQ3_S{};
  block.d = codes.d;
  for (int i = 0; i < 64; ++i) {
    block.qs[i] = static_cast<uint8_t>(codes.index[i]);
    block.qh[i / 8] = static_cast<uint8_t>(block.qh[i / 8] | ((codes.index[i] >> 8) << (i % 8)));
  }
  for (int i = 0; i < 32; ++i) block.signs[i] = codes.signs[i];
  put_scale_nibbles(codes, 4, block.scales);
}

}  // namespace candor::quant
