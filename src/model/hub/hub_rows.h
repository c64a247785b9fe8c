#pragma once
// Moves elements and rows of matrices between the order of Hugging Face checkpoints and that of GGUF files.

#include <cstddef>

#include "base/error.h"
#include "model/hub/hub_names.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// src: [n_rows, n_cols] of `unit` bytes an element; dst: [n_cols, n_rows].
void transpose_elements(const std::byte* src, size_t n_rows, size_t n_cols, size_t unit, std::byte* dst);

// Of each of n_rows rows the second half, then the first.
void swap_halves(const std::byte* src, size_t n_rows, size_t row_bytes, std::byte* dst);
void swap_halves_of(const TensorView& from, std::byte* to);

// All rows, of row_bytes each, from the checkpoint's order to GGUF's, and back.
void rows_to_here(const std::byte* src, const RowOrder& order, size_t row_bytes, std::byte* dst);
void rows_to_there(const std::byte* src, const RowOrder& order, size_t row_bytes, std::byte* dst);

// Sets order.size, of the view's rows (a vector's elements are taken as rows); the bytes of one. Refuses by name what
// does not divide so.
Result<size_t> fit_rows(const TensorView& view, RowOrder& order);

}  // namespace candor::model
