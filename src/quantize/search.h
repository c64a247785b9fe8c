#pragma once
// f32 values to block formats with a search for the scales that lose least: what `candor quantize` writes. The loss is
// the squared error weighted by w = rms(block) + |x| (a large weight matters more, and none matters nothing). Per
// group: several step sizes around the one that spans the extremes, each refitted by least squares (for affine groups
// scale and minimum together); then, once the super-block's f16 scales are fixed, the integer scales next to the
// rounded ones. Deterministic, and a function of the block alone, so that any number of threads and any processor
// writes the same file. Candidates are tried four at a time in f32.

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace candor::quantize {

// x: [n] f32, finite; importance: [n], by which errors count besides, or nullptr; dst: n / block_elements blocks,
// overwritten. Types without a search (floats, Q8_0 and the like) are encoded as tensor/encode.h does. REQUIRES:
// dtype is a weight type, n a multiple of its block_elements.
void encode_searched(DType dtype, const float* x, const float* importance, int64_t n, std::byte* dst);

}  // namespace candor::quantize
