#pragma once
// IQ1_S and IQ1_M: vectors of 8 out of {-1, 0, 1}, all shifted by 1/8 up or down (tensor/quant/grid.h has them as
// eighths: {-7, 1, 9} and {-9, -1, 7}). Value (d / 8 * (2 s + 1)) * eighths.
// IQ1_S: 256 elements in 50 bytes: f16 d; the 8 low bits of 32 indices; for each 32, 16 bits: three high bits of four
//   indices, the lowest first, 3 bits of s, and the shift of all, set where it is down.
// IQ1_M: 56 bytes: the 8 low bits of 32 indices; a nibble for each: three high bits and its shift; four times 16 bits:
//   four times 3 bits of s, one for 16, and 4 bits of an f16 d, the lowest first.

#include <cstddef>
#include <string_view>

#include "tensor/quant/grid.h"

namespace candor::quant {

inline constexpr GridValues kIQ1Values = {-7, 1, 9, 0, -9, -1, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0};
inline constexpr int kIQ1ShiftBit = 11;  // of GridCodes::index

struct __attribute__((packed)) BlockIQ1_S {
  static constexpr DType kType = DType::kIQ1_S;
  static constexpr std::string_view kName = "IQ1_S";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .index_bits = 12,
                                       .scale_bits = 3,
                                       .halvings = 3,
                                       .shift_group = 32,
                                       .words = kIQ1Words.data(),
                                       .values = kIQ1Values};
  static constexpr ScaleFields scale_fields() { return {.scale = offsetof(BlockIQ1_S, d)}; }

  f16 d;
  uint8_t qs[32];
  uint16_t qh[8];
};
static_assert(sizeof(BlockIQ1_S) == 50);

struct __attribute__((packed)) BlockIQ1_M {
  static constexpr DType kType = DType::kIQ1_M;
  static constexpr std::string_view kName = "IQ1_M";
  static constexpr int kElements = kSuperBlock;
  static constexpr KernelFamily kFamily = KernelFamily::kGrids;
  static constexpr GridFormat kGrid = {.dtype = kType,
                                       .index_bits = 12,
                                       .scale_bits = 3,
                                       .n_groups = 16,
                                       .halvings = 3,
                                       .shift_group = 8,
                                       .words = kIQ1Words.data(),
                                       .values = kIQ1Values};
  // Its d is spread over the scales: grid_d() puts it together.
  static constexpr ScaleFields scale_fields() { return {}; }

  uint8_t qs[32];
  uint8_t qh[16];
  uint16_t scales[4];
};
static_assert(sizeof(BlockIQ1_M) == 56);

inline void parse_grid(const BlockIQ1_S& block, GridCodes& codes) {
  codes.d = block.d;
  for (int g = 0; g < 8; ++g) {
    const uint32_t high = block.qh[g];
    codes.scales[g] = static_cast<uint8_t>((high >> 12) & 7u);
    for (int i = 0; i < 4; ++i) {
      const uint32_t index = block.qs[4 * g + i] | (((high >> (3 * i)) & 7u) << 8);
      codes.index[4 * g + i] = static_cast<uint16_t>(index | ((high >> 15) << kIQ1ShiftBit));
    }
  }
}

inline void build_grid(const GridCodes& codes, BlockIQ1_S& block) {
  block.d = codes.d;
  for (int g = 0; g < 8; ++g) {
    uint32_t high = (static_cast<uint32_t>(codes.scales[g]) << 12) |
                    ((static_cast<uint32_t>(codes.index[4 * g]) >> kIQ1ShiftBit) << 15);
    for (int i = 0; i < 4; ++i) {
      block.qs[4 * g + i] = static_cast<uint8_t>(codes.index[4 * g + i]);
      high |= ((codes.index[4 * g + i] >> 8) & 7u) << (3 * i);
    }
    block.qh[g] = static_cast<uint16_t>(high);
  }
}

inline f16 spread_d(const BlockIQ1_M& block) {
  uint32_t d = 0;
  for (int i = 0; i < 4; ++i) d |= (static_cast<uint32_t>(block.scales[i]) >> 12) << (4 * i);
  return static_cast<f16>(d);
}

inline void parse_grid(const BlockIQ1_M& block, GridCodes& codes) {
  codes.d = spread_d(block);
  for (int g = 0; g < 16; ++g) codes.scales[g] = static_cast<uint8_t>((block.scales[g / 4] >> (3 * (g % 4))) & 7u);
  for (int i = 0; i < 32; ++i) {
    codes.index[i] = static_cast<uint16_t>(block.qs[i] | (((block.qh[i / 2] >> (4 * (i % 2))) & 15u) << 8));
  }
}

inline void build_grid(const GridCodes& codes, BlockIQ1_M& block) {
  block = BlockIQ1_M{};
  for (int i = 0; i < 4; ++i) {
    block.scales[i] = static_cast<uint16_t>(((static_cast<uint32_t>(codes.d) >> (4 * i)) & 15u) << 12);
  }
  for (int g = 0; g < 16; ++g) {
    block.scales[g / 4] = static_cast<uint16_t>(block.scales[g / 4] | (codes.scales[g] << (3 * (g % 4))));
  }
  for (int i = 0; i < 32; ++i) {
    block.qs[i] = static_cast<uint8_t>(codes.index[i]);
    block.qh[i / 2] = static_cast<uint8_t>(block.qh[i / 2] | ((codes.index[i] >> 8) << (4 * (i % 2))));
  }
}

// Behind parse_grid() and build_grid(): a call of it before them would ask GridBlock too early.
inline f16 grid_d(const BlockIQ1_M& block) {
  return spread_d(block);
}

}  // namespace candor::quant
