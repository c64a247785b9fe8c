#pragma once
// Transposes 16 rows of a weight matrix, the order of a packed panel: dst[i][r] = element i of row r. Pure; any thread,
// any alignment.

#include <cstddef>

namespace candor::kernels {

// Row r begins at rows + r * stride_bytes. Elements of 4 bytes, and of 2.
void interleave_words(const std::byte* rows, size_t stride_bytes, size_t n_elements, std::byte* dst);
void interleave_halves(const std::byte* rows, size_t stride_bytes, size_t n_elements, std::byte* dst);

}  // namespace candor::kernels
