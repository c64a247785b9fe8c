#pragma once
// IQ2_XXS, IQ2_XS and IQ2_S: vectors of 8 magnitudes out of {8, 25, 43} (tensor/quant/grid.h), value
// (d / 8 * (2 s + 1)) * magnitude.
// IQ2_XXS: 256 elements in 66 bytes: f16 d; for each 32, four bytes of indices, then 32 bits: four times seven signs,
//   the lowest first, and above them s.
// IQ2_XS: 74 bytes: f16 d; 32 times 16 bits: 9 of the index, seven signs; eight bytes with two s each, one for 16.
// IQ2_S: 82 bytes: f16 d; the 8 low bits of 32 indices; 32 bytes of signs; eight bytes with two high bits of four
//   indices each; eight bytes with two s.

#include <cstddef>
#include <string_view>

#include "tensor/quant/grid.h"

namespace candor::quant {

inline constexpr GridValues kIQ2Values = signed_values({8, 25, 43, 0, 0, 0, 0, 0});

struct __attribute__((packed)) BlockIQ2_XXS {
  static constexpr DType kType = DType::kIQ2_XXS;
  static constexpr std::string_view kName = "IQ2_XXS";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {
      .dtype = kType, .sign_bits = 7, .halvings = 3, .words = kIQ2_XXSWords.data(), .values = kIQ2Values};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ2_XXS, d)}; }

  struct __attribute__((packed)) Group {
    uint8_t index[4];
    uint32_t signs;
  };
  f16 d;
  Group groups[8];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

struct __attribute__((packed)) BlockIQ2_XS {
  static constexpr DType kType = DType::kIQ2_XS;
  static constexpr std::string_view kName = "IQ2_XS";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .index_bits = 9,
                                       .sign_bits = 7,
                                       .n_groups = 16,
                                       .halvings = 3,
                                       .words = kIQ2_XSWords.data(),
                                       .values = kIQ2Values};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ2_XS, d)}; }

  f16 d;
  uint16_t qs[32];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

struct __attribute__((packed)) BlockIQ2_S {
  static constexpr DType kType = DType::kIQ2_S;
  static constexpr std::string_view kName = "IQ2_S";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .index_bits = 10,
                                       .sign_bits = 8,
                                       .n_groups = 16,
                                       .halvings = 3,
                                       .words = kIQ2_SWords.data(),
                                       .values = kIQ2Values};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ2_S, d)}; }

  f16 d;
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_S) == 82);

inline void parse_grid(const BlockIQ2_XXS& block, GridCodes& codes) {
  codes.d = block.d;
  for (int g = 0; g < 8; ++g) {
    const uint32_t signs = block.groups[g].signs;
    codes.scales[g] = static_cast<uint8_t>(signs >> 28);
    for (int i = 0; i < 4; ++i) {
      codes.index[4 * g + i] = block.groups[g].index[i];
      codes.signs[4 * g + i] = with_even_sign((signs >> (7 * i)) & 127u);
    }
  }
}

inline void build_grid(const GridCodes& codes, BlockIQ2_XXS& block) {
  block.d = codes.d;
  for (int g = 0; g < 8; ++g) {
    uint32_t signs = static_cast<uint32_t>(codes.scales[g]) << 28;
    for (int i = 0; i < 4; ++i) {
      block.groups[g].index[i] = static_cast<uint8_t>(codes.index[4 * g + i]);
      signs |= (codes.signs[4 * g + i] & 127u) << (7 * i);
    }
    block.groups[g].signs = signs;
  }
}

inline void parse_grid(const BlockIQ2_XS& block, GridCodes& codes) {
  codes.d = block.d;
  for (int i = 0; i < 32; ++i) {
    codes.index[i] = block.qs[i] & 511u;
    codes.signs[i] = with_even_sign(block.qs[i] >> 9);
  }
  take_scale_nibbles(block.scales, 8, codes);
}

inline void build_grid(const GridCodes& codes, BlockIQ2_XS& block) {
  block.d = codes.d;
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = static_cast<uint16_t>(codes.index[i] | ((codes.signs[i] & 127u) << 9));
  }
  put_scale_nibbles(codes, 8, block.scales);
}

inline void parse_grid(const BlockIQ2_S& block, GridCodes& codes) {
  codes.d = block.d;
  for (int i = 0; i < 32; ++i) {
    codes.index[i] = static_cast<uint16_t>(block.qs[i] | (((block.qh[i / 4] >> (2 * (i % 4))) & 3u) << 8));
    codes.signs[i] = block.signs[i];
  }
  take_scale_nibbles(block.scales, 8, codes);
}

inline void build_grid(const GridCodes& codes, BlockIQ2_S& block) {
  block = BlockIQ2_S{};
  block.d = codes.d;
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = static_cast<uint8_t>(codes.index[i]);
    block.qh[i / 4] = static_cast<uint8_t>(block.qh[i / 4] | ((codes.index[i] >> 8) << (2 * (i % 4))));
    block.signs[i] = codes.signs[i];
  }
  put_scale_nibbles(codes, 8, block.scales);
}

}  // namespace candor::quant
