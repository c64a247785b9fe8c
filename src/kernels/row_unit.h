#pragma once
// One output row of a packed unit (256 k or fewer) as plain integers, between the file's blocks and the packed panel.
// Internal to packing, to embedding rows and to tests.

#include <cstddef>

#include "kernels/packed_format.h"
#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/unit_codes.h"

namespace candor::kernels {

using RowUnit = quant::UnitCodes;

// Reads n_k elements of a row of the file.
using RowParser = void (*)(const std::byte* blocks, int n_k, RowUnit& dst);

// REQUIRES: a dtype with a packed format.
RowParser row_parser_of(DType dtype);

// rows: [16]. dst: unit_bytes(format, n_k), overwritten.
void write_unit(const PackedFormat& format, const RowUnit* rows, int n_k, std::byte* dst);

// The inverse, for one row of the panel.
void read_unit(const PackedFormat& format, const std::byte* src, int n_k, int row, RowUnit& dst);

// dst: [n_k] f32, the values that the file means.
void decode_row_unit(const PackedFormat& format, const RowUnit& unit, int n_k, float* dst);

}  // namespace candor::kernels
