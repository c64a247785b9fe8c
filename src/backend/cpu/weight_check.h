#pragma once
// Looks for NaN and infinity in what a file calls weights: the values of float tensors and the scales of block formats.
// Reads the file's bytes only; may run on any thread.

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "tensor/tensor_view.h"

namespace candor::backend::cpu {

// First row in [row_begin, row_end) that holds such a value. REQUIRES: a weight dtype.
std::optional<int64_t> first_bad_row(const TensorView& tensor, int64_t row_begin, int64_t row_end);

// The error for a row that first_bad_row() returned: names the tensor, the row and the value.
Error describe_bad_row(const TensorView& tensor, int64_t row);

}  // namespace candor::backend::cpu
