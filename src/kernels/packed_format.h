#pragma once
// The bytes of a packed unit (256 k of 16 outputs; README.md draws it) for every quantised format, as functions of the
// constants that the format's block struct has (tensor/quant/block_format.h).
// A unit of n k (256, or a multiple of 32 at the end of a 32-block row) is, in this order, r = row of the panel:
//   super-blocks:  d f16[16], then dmin f16[16] if has_min, then the sub-scale bytes [scale_bytes][16], for Q4_K and
//                  Q5_K [scale_bytes / 2][16][2]:
//     Q4_K, Q5_K:  8 x (sc_j | min_j >> 4 << 6), then 4 x (min_i & 15 | (min_{i+4} & 15) << 4)
//     Q2_K:        16 x (sc_j | min_j << 4)          Q6_K: 16 x int8 sc_j
//     Q3_K:        8 x (low 4 bits of sc_i, sc_{i+8}), then 4 x (high 2 bits of sc_i, sc_{i+4}, sc_{i+8}, sc_{i+12})
//     IQ4_XS:      4 x (low 4 bits of sc_i, sc_{i+4}), then 2 x (high 2 bits of sc_i, sc_{i+2}, sc_{i+4}, sc_{i+6})
//     Q4_K_FAST:   d f32[16], then 8 x a_j, then 8 x int8 b_j (tensor/quant/q4_k_fast.h)
//   32-blocks:     d f16[n / 32][16] (MXFP4: e uint8[n / 32][16]), then m f16[n / 32][16] if has_min
//   codes:         the low bit plane, then the high one. A plane of b bits holds, in byte [v][r][i], the bits of
//                  k = 4 (v * 8 / b + s) + i at bit b * s: 64 bytes are 8 / b groups of 4 k of all rows.
//   scaled rows:   of the whole panel, not of a unit: d f32[16], then the codes as one plane of 8 bits, of k up to the
//                  next multiple of 64
//   floats:        256 d f32[16], for FP4 the scales [8][16], then the codes [64][16] of pairs of k; 128 k are a unit
// A code is the file's unsigned integer; Q8_0's and W8A8's is q + 128. Q4_K_FAST's have changed places, k with k ^ 1.

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weight.h"
#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/fp4.h"
#include "tensor/quant/fp8.h"
#include "tensor/weight_formats.h"

namespace candor::kernels {

using quant::CodeValues;
using quant::KernelFamily;
using quant::PackedFormat;
using quant::SubScales;

// Whether a 32-block's d is an exponent byte instead of an f16.
constexpr bool has_exponents(const PackedFormat& f) {
  return !f.is_super && f.scale_bytes == 1;
}

// Sub-scale byte i of a row, from the first of the panel's.
constexpr size_t scale_byte_at(const PackedFormat& f, int i, int row) {
  const bool is_paired = f.sub_scales == SubScales::kSixBitPairs;
  return static_cast<size_t>(is_paired ? i / 2 * 2 * kPanelRows + 2 * row + i % 2 : i * kPanelRows + row);
}

template <class Block>
constexpr bool kHasPackedFormat =
    Block::kFamily != KernelFamily::kFloats&& Block::kFamily != KernelFamily::kScaledRows&& Block::kFamily !=
    KernelFamily::kFloatBlocks&& Block::kFamily != KernelFamily::kGrids;

template <class Block>
constexpr const PackedFormat* packed_format_of() {
  if constexpr (kHasPackedFormat<Block>) {
    return &Block::kPacked;
  } else {
    return nullptr;
  }
}

// nullptr for float types, scaled rows, blocks of floats, grids and unknown ones.
constexpr const PackedFormat* find_packed_format(DType dtype) {
  const PackedFormat* found = nullptr;
  visit_block(
      dtype, [&]<class Block>(BlockType<Block>) { found = packed_format_of<Block>(); }, WeightBlocks{});
  return found;
}

// REQUIRES: a weight's dtype.
constexpr KernelFamily family_of(DType dtype) {
  KernelFamily family = KernelFamily::kFloats;
  visit_block(
      dtype, [&]<class Block>(BlockType<Block>) { family = Block::kFamily; }, WeightBlocks{});
  return family;
}

// Bytes before a super-block's sub-scales.
constexpr int scales_offset(const PackedFormat& f) {
  return kPanelRows * (f.d_bytes + (f.has_min ? 2 : 0));
}
// Bytes before the codes, and of the whole, in a unit of n_k elements.
constexpr size_t unit_header_bytes(const PackedFormat& f, int n_k) {
  if (f.is_super) return static_cast<size_t>(scales_offset(f) + kPanelRows * f.scale_bytes);
  return static_cast<size_t>(kPanelRows * (n_k / 32) * (f.scale_bytes + (f.has_min ? 2 : 0)));
}
constexpr size_t low_plane_bytes(const PackedFormat& f, int n_k) {
  return static_cast<size_t>(kPanelRows * n_k * f.low_bits / 8);
}
constexpr size_t unit_bytes(const PackedFormat& f, int n_k) {
  return unit_header_bytes(f, n_k) + static_cast<size_t>(kPanelRows * n_k * (f.low_bits + f.high_bits) / 8);
}

// Of scaled rows: k that a panel holds, and bytes before its codes.
constexpr int kScaledRowsStep = 64;
constexpr size_t kScaledRowsHeader = kPanelRows * sizeof(float);
constexpr int64_t scaled_rows_depth(int64_t n_in) {
  return (n_in + kScaledRowsStep - 1) / kScaledRowsStep * kScaledRowsStep;
}

// Of blocks of floats: k of a unit, where the scales of FP4 and the codes begin, bytes of a pair of k of a row.
constexpr int kFloatBlockDepth = 128;
constexpr size_t kFp4ScalesAt = kPanelRows * sizeof(float);
struct FloatBlockFormat {
  size_t codes_at;
  size_t pair_bytes;
  constexpr size_t unit_bytes() const { return codes_at + kFloatBlockDepth / 2 * kPanelRows * pair_bytes; }
};
constexpr FloatBlockFormat float_block_format(DType dtype) {
  if (dtype == DType::kFP4) return {kFp4ScalesAt + sizeof(quant::BlockFP4::scales) * kPanelRows, 1};
  return {kPanelRows * sizeof(float), 2};
}
static_assert(float_block_format(DType::kFP8).unit_bytes() == kPanelRows * sizeof(quant::BlockFP8));
static_assert(float_block_format(DType::kFP4).unit_bytes() == kPanelRows * sizeof(quant::BlockFP4));

// Packing keeps the file's bytes. Rebased blocks have scales of their own; TQ1_0 takes the 2 bits of TQ2_0 for a
// weight, and a d that holds for more than 32 of Q1_0 and Q2_0 is repeated: a third more at most.
template <class... Blocks>
constexpr bool all_keep_their_size(BlockList<Blocks...>) {
  const auto keeps = []<class Block>(BlockType<Block>) {
    if constexpr (!kHasPackedFormat<Block>) {
      return true;
    } else {
      constexpr size_t kPackedBytes = unit_bytes(Block::kPacked, kUnit);
      constexpr size_t kFileBytes = kPanelRows * sizeof(Block) * kUnit / Block::kElements;
      constexpr bool kMayGrow = Block::kPacked.values == CodeValues::kRebased || Block::kType == DType::kTQ1_0 ||
                                Block::kType == DType::kQ1_0 || Block::kType == DType::kQ2_0;
      return kMayGrow ? kPackedBytes <= kFileBytes * 4 / 3 : kPackedBytes == kFileBytes;
    }
  };
  return (keeps(BlockType<Blocks>{}) && ...);
}
static_assert(all_keep_their_size(WeightBlocks{}), "a packed layout must take the bytes of the file's blocks");

}  // namespace candor::kernels
