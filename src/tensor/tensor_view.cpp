#include "tensor/tensor_view.h"

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

size_t TensorView::row_bytes() const {
  const DTypeInfo& info = dtype_info(dtype);
  return static_cast<size_t>(shape.row_elements() / info.block_elements) * static_cast<size_t>(info.block_bytes);
}

void decode_row(const TensorView& view, int64_t row, float* dst) {
  CANDOR_DCHECK(row >= 0 && row < view.shape.n_rows());
  decode_elements(view.dtype, view.row(row), view.shape.row_elements(), dst);
}

}  // namespace candor
