#pragma once
// Weights of the formats in kernels/packed_format.h as int8 for mma_s8, from the panel's codes (unit_planes.h), and the
// sub-scales and minima of super-blocks.

#include "backend/cuda/kernels/unit_planes.h"
#include "kernels/packed_format.h"

namespace candor::backend::cuda {

using kernels::CodeValues;
using kernels::kPanelRows;
using kernels::kUnit;
using kernels::PackedFormat;
using kernels::SubScales;

// Two numbers of a lane's two outputs.
CANDOR_DEVICE float half_of(uint32_t pair, int output) {
  return half_to_number(static_cast<uint16_t>(output == 0 ? pair & 0xffffu : pair >> 16));
}
// i: constant behind unrolled loops.
CANDOR_DEVICE uint32_t byte_of(uint32_t bytes, int i) {
  return permute_bytes(bytes, 0, 0x4440u + static_cast<uint32_t>(i));
}

// The codes of n_blocks times 32 k.
template <class Block, int n_blocks>
struct BlockCodes {
  static constexpr PackedFormat kPacked = Block::kPacked;
  static constexpr int kLowBytes = static_cast<int>(kernels::low_plane_bytes(kPacked, 32));

  PlaneWords<kPacked.low_bits, n_blocks> low;
  PlaneWords<kPacked.high_bits, n_blocks> high;

  // codes: of a unit of n_k, from its block `first` on. n: blocks that are there.
  CANDOR_DEVICE void load(const uint8_t* codes, int n_k, int first = 0, int n = n_blocks) {
    low.load(codes + kLowBytes * first, n);
    high.load(codes + kLowBytes * (n_k / 32) + 64 * kPacked.high_bits * first, n);
  }

  // As integers without a sign, of four k.
  CANDOR_DEVICE uint32_t fields(int b, int half, int output) const {
    if constexpr (kPacked.high_bits == 0) return low.fields(b, half, output);
    return low.fields(b, half, output) | (high.fields(b, half, output) << kPacked.low_bits);
  }

  // a: of mma_s8.
  CANDOR_DEVICE void weights(int b, uint32_t (&a)[4]) const {
    CANDOR_UNROLL
    for (int output = 0; output < 2; ++output) {
      if constexpr (kPacked.values == CodeValues::kIq4) {
        look_up(byte_table_of(quant::kIq4Values), b, output, a);
      } else if constexpr (kPacked.values == CodeValues::kFp4) {
        look_up(byte_table_of(quant::kFp4TwiceValues), b, output, a);
      } else {
        a[output] = weights_of(fields(b, 0, output));
        a[2 + output] = weights_of(fields(b, 1, output));
      }
    }
  }

 private:
  static CANDOR_DEVICE uint32_t weights_of(uint32_t codes) {
    if constexpr (kPacked.values == CodeValues::kSigns) return ((codes ^ 0x01010101u) * 0xfeu) | 0x01010101u;
    if constexpr (kPacked.low_bits == 8) return codes ^ 0x80808080u;
    return subtract_from_bytes<kPacked.offset>(codes);
  }

  CANDOR_DEVICE void look_up(const ByteTable& table, int b, int output, uint32_t (&a)[4]) const {
    const uint32_t word = low.word(b, output);
    const uint32_t first = look_up_four(table, word & 0xffffu);
    const uint32_t second = look_up_four(table, word >> 16);
    a[output] = permute_bytes(first, second, 0x6420);
    a[2 + output] = permute_bytes(first, second, 0x7531);
  }
};

// The sub-scale bytes of a unit, for two outputs.
template <class Block>
struct SubScaleBytes {
  static constexpr PackedFormat kPacked = Block::kPacked;
  static constexpr bool kIsPaired = kPacked.sub_scales == SubScales::kSixBitPairs;
  static constexpr int kBytes = kPacked.sub_scales == SubScales::kMultipliers ? 16 : kPacked.scale_bytes;
  static constexpr int kScaleBytes = kIsPaired ? kPacked.n_groups : kBytes;  // that scales are made of
  static constexpr int kWords = kIsPaired ? kScaleBytes / 2 : kScaleBytes;

  uint32_t words[kWords > 0 ? kWords : 1];  // a byte i of each output, or two of each

  // bytes: the first of the unit's.
  CANDOR_DEVICE void load(const uint8_t* bytes) {
    CANDOR_UNROLL
    for (int i = 0; i < kWords; ++i) {
      if constexpr (kIsPaired) {
        words[i] = load4(bytes + 32 * i + 4 * lane_group());
      } else {
        words[i] = load2(bytes + 16 * i + 2 * lane_group());
      }
    }
  }

  // The bits of mask (of each byte) of byte i.
  CANDOR_DEVICE int32_t byte(int i, int output, uint32_t mask = 0xffffffffu) const {
    if constexpr (kIsPaired) return static_cast<int32_t>(byte_of(words[i / 2] & mask, 2 * output + i % 2));
    return static_cast<int32_t>(byte_of(words[i] & mask, output));
  }

  // Of group j.
  CANDOR_DEVICE int32_t scale(int j, int output) const {
    switch (kPacked.sub_scales) {
      case SubScales::kSixBitPairs:
        return byte(j, output, 0x3f3f3f3fu);
      case SubScales::kNibbles:
        return byte(j, output, 0x0f0fu);
      case SubScales::kBytes:
        return static_cast<int8_t>(byte(j, output));
      case SubScales::kSixBitsOf16:
        return six_bits(byte(j % 8, output) >> (j / 8 * 4), byte(8 + j % 4, output) >> (j / 4 * 2));
      case SubScales::kSixBitsOf8:
        return six_bits(byte(j % 4, output) >> (j / 4 * 4), byte(4 + j % 2, output) >> (j / 2 * 2));
      default:
        return 1;
    }
  }

 private:
  static CANDOR_DEVICE int32_t six_bits(int32_t low, int32_t high) { return ((low & 15) | ((high & 3) << 4)) - 32; }
};

// What multiplies the 16 sums of 16 k of each row: the minima of 16 groups, or of 8 groups, each twice. a: of mma_s8,
// whose first 16 k are the sums. bytes: the sub-scale bytes of a unit.
template <class Block>
CANDOR_DEVICE void load_minima(const uint8_t* bytes, uint32_t (&a)[4]) {
  const uint32_t t = lane_quarter();
  a[2] = a[3] = 0;
  if constexpr (Block::kPacked.sub_scales == SubScales::kSixBitPairs) {
    bytes += 4 * lane_group();
    const uint32_t high = load4(bytes + 32 * t);
    const uint32_t low = load4(bytes + 32 * (4 + t % 2)) >> (4 * (t / 2));
    const uint32_t minima = (low & 0x0f0f0f0fu) | ((high >> 2) & 0x30303030u);
    a[0] = permute_bytes(minima, minima, 0x1100);
    a[1] = permute_bytes(minima, minima, 0x3322);
  } else {
    bytes += 64 * t + 2 * lane_group();
    const uint32_t first = permute_bytes(load2(bytes), load2(bytes + 16), 0x5140);
    const uint32_t second = permute_bytes(load2(bytes + 32), load2(bytes + 48), 0x5140);
    a[0] = (permute_bytes(first, second, 0x5410) >> 4) & 0x0f0f0f0fu;
    a[1] = (permute_bytes(first, second, 0x7632) >> 4) & 0x0f0f0f0fu;
  }
}

}  // namespace candor::backend::cuda
