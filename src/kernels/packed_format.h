#pragma once
// How each block format lies in a panel (packed_weight.h), as constants that packing and kernels share.
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
// A code is the file's unsigned integer; Q8_0's is q + 128. Q4_K_FAST's have changed places in pairs, k with k ^ 1.

#include <cstddef>
#include <cstdint>

#include "kernels/packed_weight.h"

namespace candor::kernels {

struct PackedFormat {
  DType dtype = DType::kF32;
  bool is_super = false;  // one d for 256 k, with integer sub-scales
  int low_bits = 0;
  int high_bits = 0;
  bool has_min = false;
  int offset = 0;       // weight = code - offset, before any table
  int n_groups = 0;     // sub-scales per 256; super-blocks only
  int scale_bytes = 0;  // a row: all sub-scales of a unit, or one 32-block's d
  int d_bytes = 2;      // of a super-block
};

inline constexpr PackedFormat kPackedFormats[] = {
    {DType::kQ2_K, true, 2, 0, true, 0, 16, 16},   {DType::kQ3_K, true, 2, 1, false, 4, 16, 12},
    {DType::kQ4_K, true, 4, 0, true, 0, 8, 12},    {DType::kQ5_K, true, 4, 1, true, 0, 8, 12},
    {DType::kQ6_K, true, 4, 2, false, 32, 16, 16}, {DType::kIQ4_XS, true, 4, 0, false, 0, 8, 6},
    {DType::kQ8_0, false, 8, 0, false, 128, 0, 2}, {DType::kQ4_0, false, 4, 0, false, 8, 0, 2},
    {DType::kQ4_1, false, 4, 0, true, 0, 0, 2},    {DType::kQ5_0, false, 4, 1, false, 16, 0, 2},
    {DType::kQ5_1, false, 4, 1, true, 0, 0, 2},    {DType::kIQ4_NL, false, 4, 0, false, 0, 0, 2},
    {DType::kMXFP4, false, 4, 0, false, 0, 0, 1},  {DType::kQ4_KFast, true, 4, 0, false, 0, 8, 16, 4},
};

// Sub-scale byte i of a row, from the first of the panel's.
constexpr size_t scale_byte_at(const PackedFormat& f, int i, int row) {
  const bool is_paired = f.dtype == DType::kQ4_K || f.dtype == DType::kQ5_K;
  return static_cast<size_t>(is_paired ? i / 2 * 2 * kPanelRows + 2 * row + i % 2 : i * kPanelRows + row);
}

// nullptr for float types and unknown ones.
constexpr const PackedFormat* find_packed_format(DType dtype) {
  for (const PackedFormat& format : kPackedFormats) {
    if (format.dtype == dtype) return &format;
  }
  return nullptr;
}

// Formats that the same code multiplies, compiled together: symmetric ones have scales, affine ones minima too.
enum class KernelFamily : uint8_t { kFloats, kBlocks, kAffineSuperBlocks, kSymmetricSuperBlocks };

// REQUIRES: a float type, or one with a packed format.
constexpr KernelFamily family_of(DType dtype) {
  const PackedFormat* format = find_packed_format(dtype);
  if (format == nullptr) return KernelFamily::kFloats;
  if (!format->is_super) return KernelFamily::kBlocks;
  return format->has_min ? KernelFamily::kAffineSuperBlocks : KernelFamily::kSymmetricSuperBlocks;
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

}  // namespace candor::kernels
