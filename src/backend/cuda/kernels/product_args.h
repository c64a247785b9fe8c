#pragma once
// What the kernels of matrix products take: packed weights (kernels/packed_weight.h) and encoded activations, as the
// CPU has them. Orders: docs/numerics.md, "Products". Plain data: it is copied as bytes.

#include <cstddef>
#include <cstdint>

namespace candor::backend::cuda {

struct ProductMatrix {
  const std::byte* panels = nullptr;  // packed, aligned to 64 bytes
  const float* bias = nullptr;        // [n_out] or nullptr
};

// Rows [first_row, first_row + n_rows) of a launch's activations and results, and the matrix that they are multiplied
// by.
struct RowRun {
  int32_t matrix = 0;
  int32_t first_row = 0;
  int32_t n_rows = 0;
};

// dst[row, n] = sum over k of activation[row, k] * weight[n, k], + bias[n].
struct ProductArgs {
  ProductMatrix one{};                      // where `runs` is nullptr; of rows [0, most_rows)
  const RowRun* runs = nullptr;             // [grid's z], of the device
  const ProductMatrix* matrices = nullptr;  // of runs, of one shape and type; runs of one without panels are left out
  const std::byte* activations = nullptr;   // rows of row_bytes
  float* dst = nullptr;                     // row i at dst + i * dst_stride; columns from n_out on are not written
  int64_t dst_stride = 0;
  int32_t row_bytes = 0;
  int32_t sums_at = 0;  // of an encoded row
  int32_t scales_at = 0;
  int32_t halves_at = 0;
  int32_t panel_bytes = 0;
  int32_t n_in = 0;
  int32_t n_out = 0;      // that are wanted; the matrix may have more
  int32_t most_rows = 0;  // of any run
};

}  // namespace candor::backend::cuda
