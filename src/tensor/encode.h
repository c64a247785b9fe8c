#pragma once
// Quantises f32 values to a weight format, deterministically and without a search for better scales: for writing files
// and for tests. What decode_elements() gives back is the truth of the result.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace candor {

// src: [n] f32, finite; dst: n / block_elements blocks, overwritten (of types that have a row header a row). Values
// whose f16 scale passes 65504 become infinite. REQUIRES: dtype is a weight type, n a multiple of its block_elements.
void encode_elements(DType dtype, const float* src, int64_t n, std::byte* dst);

// The same of rows, each by itself. src: [n_rows, n] f32; dst: n_rows of row_bytes().
void encode_rows(DType dtype, const float* src, int64_t n_rows, int64_t n, std::byte* dst);

}  // namespace candor
