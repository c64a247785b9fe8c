#pragma once
// One row of one unit (256 k or fewer) as plain integers, between the file's blocks and the panel. Internal to packing,
// to embedding rows and to tests.

#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "kernels/packed_format.h"

namespace candor::kernels {

struct RowUnit {
  uint8_t codes[kUnit];  // unsigned, as packed_format.h says
  uint8_t scales[16];    // super-blocks: raw sub-scales (Q6_K: int8 bits), unsigned as in the file; Q4_K_FAST: a_j
  uint8_t mins[16];      // Q4_K_FAST: bits of b_j
  f16 d[8];              // super-blocks: [0]; 32-blocks: one each (MXFP4: the exponent); Q4_K_FAST: the bits of an f32
  f16 m[8];              // dmin or m
};

// blocks: n_k elements of a row of the file.
void parse_row_unit(DType dtype, const std::byte* blocks, int n_k, RowUnit& dst);

// rows: [16]. dst: unit_bytes(format, n_k), overwritten.
void write_unit(const PackedFormat& format, const RowUnit* rows, int n_k, std::byte* dst);

// The inverse, for one row of the panel.
void read_unit(const PackedFormat& format, const std::byte* src, int n_k, int row, RowUnit& dst);

// dst: [n_k] f32, the values that the file means.
void decode_row_unit(const PackedFormat& format, const RowUnit& unit, int n_k, float* dst);

}  // namespace candor::kernels
