#include "tensor/tensor_view.h"

#include <cstdint>

#include "base/checked.h"
#include "base/error.h"

namespace candor {

int64_t Shape::n_rows() const {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < n_dims; ++i) rows *= dims[static_cast<size_t>(i)];
  return rows;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int32_t i = 0; i < shape.n_dims; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<size_t> tensor_bytes_of(DType dtype, const Shape& shape) {
  const DTypeInfo& info = dtype_info(dtype);
  const auto headers = checked_mul<int64_t>(shape.n_rows(), info.row_header_bytes);
  const auto blocks = checked_mul<int64_t>(shape.n_elements() / info.block_elements, info.block_bytes);
  if (!headers || !blocks || *blocks > INT64_MAX - *headers) return std::nullopt;
  return static_cast<size_t>(*blocks + *headers);
}

size_t TensorView::row_bytes() const {
  return candor::row_bytes(dtype_info(dtype), shape.row_elements());
}

void decode_row(const TensorView& view, int64_t row, float* dst) {
  CANDOR_DCHECK(row >= 0 && row < view.shape.n_rows());
  decode_elements(view.dtype, view.row(row), view.shape.row_elements(), dst);
}

void decode_rows(const TensorView& view, float* dst) {
  const int64_t n = view.shape.row_elements();
  for (int64_t row = 0; row < view.shape.n_rows(); ++row) decode_row(view, row, dst + row * n);
}

}  // namespace candor
