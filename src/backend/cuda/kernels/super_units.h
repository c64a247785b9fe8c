#pragma once
// A unit of a super-block format (256 k of 16 outputs) as a warp multiplies it by mma_s8 with 8 rows: fragments of its
// weights, integer sums under sub-scales, and the term that the unit adds to each output. Orders: docs/numerics.md,
// "Products with block-quantised weights". All integers are exact.
//
// Of the 16 outputs by 8 rows of a result a lane has four: i < 4 is output 2 g + i / 2 and row 2 t + i % 2, where
// g = lane() / 4 and t = lane() % 4.

#include "backend/cuda/kernels/block_weights.h"

namespace candor::backend::cuda {

inline constexpr int kBlocksOfUnit = kUnit / 32;

// Weights of a unit of a format of kernels/packed_format.h.
template <class Block>
struct SuperUnit {
  static constexpr PackedFormat kPacked = Block::kPacked;
  // Groups that have a sub-scale of their own.
  static constexpr int kGroups = kPacked.sub_scales == SubScales::kOnes ? 1 : kPacked.n_groups;
  static constexpr bool kHasMin = kPacked.has_min;
  static constexpr int kScalesAt = kernels::scales_offset(kPacked);
  static constexpr int kCodesAt = static_cast<int>(kernels::unit_header_bytes(kPacked, kUnit));
  static constexpr int64_t kBytes = static_cast<int64_t>(kernels::unit_bytes(kPacked, kUnit));

  BlockCodes<Block, kBlocksOfUnit> codes;
  SubScaleBytes<Block> scales;
  uint32_t minima[4];
  uint32_t d_pair = 0;
  uint32_t m_pair = 0;

  CANDOR_DEVICE void load(const uint8_t* unit) {
    codes.load(unit + kCodesAt, kUnit);
    scales.load(unit + kScalesAt);
    d_pair = load4(unit + 4 * lane_group());
    if constexpr (kHasMin) {
      m_pair = load4(unit + 2 * kPanelRows + 4 * lane_group());
      load_minima<Block>(unit + kScalesAt, minima);
    }
  }
  CANDOR_DEVICE void weights(int b, uint32_t (&a)[4]) const { codes.weights(b, a); }
  CANDOR_DEVICE int32_t scale(int j, int output) const { return scales.scale(j, output); }
  CANDOR_DEVICE float d(int output) const { return half_of(d_pair, output); }
  CANDOR_DEVICE float min(int output) const { return half_of(m_pair, output); }
};

// Rebased weights (tensor/quant/q4_k_fast.h) are bytes under one f32 scale.
template <>
struct SuperUnit<quant::BlockQ4_KFast> {
  using Block = quant::BlockQ4_KFast;
  static constexpr PackedFormat kPacked = Block::kPacked;
  static constexpr int kGroups = 1;
  static constexpr bool kHasMin = false;
  static constexpr int kScalesAt = kernels::scales_offset(kPacked);
  static constexpr int kCodesAt = static_cast<int>(kernels::unit_header_bytes(kPacked, kUnit));
  static constexpr int64_t kBytes = static_cast<int64_t>(kernels::unit_bytes(kPacked, kUnit));

  BlockCodes<Block, kBlocksOfUnit> codes;
  SubScaleBytes<Block> bytes;  // multipliers, then offsets
  Uint2 d_pair{};

  CANDOR_DEVICE void load(const uint8_t* unit) {
    codes.load(unit + kCodesAt, kUnit);
    bytes.load(unit + kScalesAt);
    d_pair = load8(unit + 8 * lane_group());
  }
  // Codes have changed places in pairs, k with k ^ 1.
  CANDOR_DEVICE void weights(int b, uint32_t (&a)[4]) const {
    CANDOR_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int output = i % 2;
      const uint32_t four = codes.fields(b, i / 2, output);
      const auto multiplier = static_cast<uint32_t>(bytes.byte(b, output));
      const uint32_t offset = static_cast<uint32_t>(bytes.byte(8 + b, output)) * 0x00010001u;
      a[i] = rebased(four >> 8, multiplier, offset) | (rebased(four, multiplier, offset) << 8);
    }
  }
  CANDOR_DEVICE int32_t scale(int, int) const { return 1; }
  CANDOR_DEVICE float d(int output) const { return float_of(output == 0 ? d_pair.x : d_pair.y); }

 private:
  // Of the codes in bytes 0 and 2.
  static CANDOR_DEVICE uint32_t rebased(uint32_t codes, uint32_t multiplier, uint32_t offset) {
    const uint32_t products = ((codes & 0x000f000fu) * multiplier) >> 4;
    return ((products & 0x00ff00ffu) + offset) & 0x00ff00ffu;
  }
};

// Adds the products of group j times its sub-scale.
template <class Unit>
CANDOR_DEVICE void add_group(const Unit& unit, int j, const uint32_t (&a)[4], const uint32_t (&x)[2],
                             int32_t (&sums)[4]) {
  int32_t products[4] = {};
  mma_s8(products, a, x);
  CANDOR_UNROLL
  for (int i = 0; i < 4; ++i) sums[i] += unit.scale(j, i / 2) * products[i];
}

// sums += sum_j sc_j * sum of q x, of block b. Where a sub-scale is of 16 k, lanes 2 and 3 of a row have its second
// half, so that each half is multiplied with the other one's weights cleared.
template <class Unit>
CANDOR_DEVICE void add_block(const Unit& unit, int b, const uint32_t (&a)[4], const uint32_t (&x)[2],
                             int32_t (&sums)[4]) {
  if constexpr (Unit::kGroups == 1) {
    mma_s8(sums, a, x);
  } else if constexpr (Unit::kGroups == kBlocksOfUnit) {
    add_group(unit, b, a, x, sums);
  } else {
    const bool is_first = lane_quarter() < 2;
    const uint32_t first[2] = {is_first ? x[0] : 0, is_first ? x[1] : 0};
    const uint32_t second[2] = {is_first ? 0 : x[0], is_first ? 0 : x[1]};
    add_group(unit, 2 * b, a, first, sums);
    add_group(unit, 2 * b + 1, a, second, sums);
  }
}

// sums += sum_j mn_j * sum of x. row_sums: what a lane has of its row, sums 4 t to 4 t + 3 in 16 bits each. A sum has
// 12 bits and a sign: it is brought as its 6 low bits and the rest.
CANDOR_DEVICE void add_minima(const uint32_t (&minima)[4], const Uint2& row_sums, int32_t (&sums)[4]) {
  const uint32_t low[2] = {permute_bytes(row_sums.x & 0x003f003fu, row_sums.y & 0x003f003fu, 0x6420), 0};
  const uint32_t high[2] = {permute_bytes(row_sums.x >> 6, row_sums.y >> 6, 0x6420), 0};
  int32_t of_high[4] = {};
  mma_s8(sums, minima, low);
  mma_s8(of_high, minima, high);
  CANDOR_UNROLL
  for (int i = 0; i < 4; ++i) sums[i] += 64 * of_high[i];
}

// u of numerics.md: what a row's scale multiplies.
template <class Unit>
CANDOR_DEVICE float unit_term(const Unit& unit, int output, int32_t sum, int32_t min_sum) {
  if constexpr (Unit::kHasMin) {
    const float minimum = mul_rn(unit.min(output), to_float_rn(min_sum));
    return fma_rn(unit.d(output), to_float_rn(sum), -minimum);
  }
  return mul_rn(unit.d(output), to_float_rn(sum));
}

}  // namespace candor::backend::cuda
