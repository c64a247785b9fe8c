#pragma once
// Quantises f32 values to a weight format, deterministically and without a search for better scales: for writing files
// and for tests. What decode_elements() gives back is the truth of the result.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace candor {

// src: [n] f32, finite; dst: n / block_elements blocks, overwritten. Values whose scale passes 65504 become infinite.
// REQUIRES: dtype is a weight type, n a multiple of its block_elements.
void encode_elements(DType dtype, const float* src, int64_t n, std::byte* dst);

}  // namespace candor
