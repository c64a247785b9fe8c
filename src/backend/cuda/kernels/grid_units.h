#pragma once
// A unit of a format whose codes name vectors of a grid (kernels/packed_grid.h), as super_units.h multiplies it.

#include "backend/cuda/kernels/super_units.h"
#include "kernels/packed_grid.h"
#include "tensor/quant/grid_words.h"

namespace candor::backend::cuda {

using kernels::GridFormat;

CANDOR_TABLE auto kIQ1Table = quant::words_of(quant::kIQ1Entries, 3, 8);
CANDOR_TABLE auto kIQ2_XXSTable = quant::words_of(quant::kIQ2_XXSEntries, 3, 8);
CANDOR_TABLE auto kIQ2_XSTable = quant::words_of(quant::kIQ2_XSEntries, 3, 8);
CANDOR_TABLE auto kIQ2_STable = quant::words_of(quant::kIQ2_SEntries, 3, 8);
CANDOR_TABLE auto kIQ3_XXSTable = quant::words_of(quant::kIQ3_XXSEntries, 8, 4);
CANDOR_TABLE auto kIQ3_STable = quant::words_of(quant::kIQ3_SEntries, 8, 4);

// The codes of vector i of a format's grid.
template <class Block>
CANDOR_DEVICE uint32_t grid_word(uint32_t i) {
  if constexpr (Block::kType == DType::kIQ2_XXS) return kIQ2_XXSTable[i];
  if constexpr (Block::kType == DType::kIQ2_XS) return kIQ2_XSTable[i];
  if constexpr (Block::kType == DType::kIQ2_S) return kIQ2_STable[i];
  if constexpr (Block::kType == DType::kIQ3_XXS) return kIQ3_XXSTable[i];
  if constexpr (Block::kType == DType::kIQ3_S) return kIQ3_STable[i];
  static_assert(Block::kGrid.n_words() <= int{kIQ1Table.size()});
  return kIQ1Table[i];
}

template <class Block>
struct GridUnit {
  static constexpr GridFormat kGrid = Block::kGrid;
  static constexpr int kGroups = kGrid.n_groups;
  static constexpr bool kHasMin = false;
  static constexpr int64_t kBytes = static_cast<int64_t>(kernels::grid_unit_bytes(kGrid));
  static constexpr int kScalesAt = kernels::grid_scales_at(kGrid);
  static constexpr int kIndicesAt = kernels::grid_indices_at(kGrid);
  static constexpr int kHighBitsAt = kernels::grid_high_bits_at(kGrid);
  static constexpr int kSignsAt = kernels::grid_signs_at(kGrid);
  static constexpr int kHighBits = kGrid.index_bits - 8;
  static constexpr bool kHasSigns = kGrid.sign_bits > 0;
  static constexpr int kVectors = 8 / kGrid.span;  // of a lane's eight k
  static constexpr int kHalfGroups = kGroups / 2;

  uint32_t low[kBlocksOfUnit];   // two indices of each output, of which a lane has one or both
  uint32_t high[kBlocksOfUnit];  // a byte of each output
  PlaneWords<kHasSigns ? 1 : 0, kBlocksOfUnit> signs;
  uint32_t scale_pairs[kHalfGroups];  // a byte of each output
  uint32_t d_pair = 0;

  // The first index of the lane's eight k of block b.
  static CANDOR_DEVICE uint32_t first_index(int b) {
    return kVectors * (4 * static_cast<uint32_t>(b) + lane_quarter());
  }

  CANDOR_DEVICE void load(const uint8_t* unit) {
    d_pair = load4(unit + 4 * lane_group());
    CANDOR_UNROLL
    for (int i = 0; i < kHalfGroups; ++i) scale_pairs[i] = load2(unit + kScalesAt + 16 * i + 2 * lane_group());
    CANDOR_UNROLL
    for (int b = 0; b < kBlocksOfUnit; ++b) {
      const uint32_t i = first_index(b);
      low[b] = load4(unit + kIndicesAt + 32 * (i / 2) + 4 * lane_group());
      if constexpr (kHighBits > 0) {
        high[b] = load2(unit + kHighBitsAt + 16 * (i * kHighBits / 8) + 2 * lane_group());
      }
    }
    signs.load(unit + kSignsAt);
  }

  // Of the lane's vector v of block b.
  CANDOR_DEVICE uint32_t index(int b, int v, int output) const {
    const uint32_t i = first_index(b) + static_cast<uint32_t>(v);
    const uint32_t byte = (low[b] >> (16 * output + 8 * (i % 2))) & 0xffu;
    if constexpr (kHighBits == 0) return byte;
    const uint32_t bits = high[b] >> (8 * output + i * kHighBits % 8);
    return byte | ((bits & ((1u << kHighBits) - 1u)) << 8);
  }

  // What half `half` of the lane's eight k of block b weighs. word: of its vector.
  CANDOR_DEVICE uint32_t weights_of(int b, int half, int output, uint32_t index, uint32_t word) const {
    constexpr ByteTable kTable = byte_table_of(kGrid.values);
    constexpr uint32_t kBits = 16 / kGrid.span;
    constexpr uint32_t kMask = ((1u << kBits) - 1u) * 0x0101u;
    const uint32_t fields = kGrid.span == 8 ? word >> (2 * kBits * static_cast<uint32_t>(half)) : word;
    uint32_t codes = (fields & kMask) | (((fields >> kBits) & kMask) << 16);
    if constexpr (kHasSigns) codes |= signs.fields(b, half, output) << 3;
    if constexpr (kGrid.shift_group > 0) codes |= ((index >> kGrid.word_bits()) & 1u) * 0x04040404u;
    return look_up_bytes(kTable, codes);
  }
  CANDOR_DEVICE void weights(int b, uint32_t (&a)[4]) const {
    CANDOR_UNROLL
    for (int output = 0; output < 2; ++output) {
      CANDOR_UNROLL
      for (int half = 0; half < 2; ++half) {
        const uint32_t i = index(b, kVectors == 2 ? half : 0, output);
        a[2 * half + output] =
            weights_of(b, half, output, i, grid_word<Block>(i % static_cast<uint32_t>(kGrid.n_words())));
      }
    }
  }

  CANDOR_DEVICE int32_t scale(int j, int output) const {
    const uint32_t s = byte_of(scale_pairs[j % kHalfGroups], output) >> (j / kHalfGroups * 4);
    return static_cast<int32_t>(2 * (s & 15u) + 1);
  }
  CANDOR_DEVICE float d(int output) const {
    return mul_rn(half_of(d_pair, output), 1.0f / static_cast<float>(1 << kGrid.halvings));
  }
};

}  // namespace candor::backend::cuda
