#pragma once
// Shapes and borrowed views of tensors as a file stores them. Dimensions are outermost first: a weight that maps
// [in] to [out] has shape [out, in] and its rows (the last dimension) are contiguous.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace candor {

inline constexpr int kMaxDims = 4;

struct Shape {
  int32_t n_dims = 0;
  std::array<int64_t, kMaxDims> dims{};  // outermost first; entries past n_dims are 0

  int64_t operator[](int i) const { return dims[static_cast<size_t>(i)]; }
  // Elements of the innermost dimension; 1 for a scalar.
  int64_t row_elements() const { return n_dims == 0 ? 1 : dims[static_cast<size_t>(n_dims - 1)]; }
  int64_t n_rows() const;
  int64_t n_elements() const { return n_rows() * row_elements(); }
  bool operator==(const Shape&) const = default;
};

// "[2048, 512]"
std::string to_string(const Shape& shape);

// Nothing where the bytes would overflow. REQUIRES: rows of whole blocks, and a number of elements that fits.
std::optional<size_t> tensor_bytes_of(DType dtype, const Shape& shape);

// Borrowed: `name` and `data` belong to the file (or test) that made the view and must outlive it.
struct TensorView {
  std::string_view name;
  DType dtype = DType::kF32;
  Shape shape;
  const std::byte* data = nullptr;
  size_t n_bytes = 0;

  std::span<const std::byte> bytes() const { return {data, n_bytes}; }
  size_t row_bytes() const;
  const std::byte* row(int64_t i) const { return data + static_cast<size_t>(i) * row_bytes(); }
};

// dst: [row_elements] f32, the file's exact decoded values. REQUIRES: dtype_info(view.dtype).is_weight.
void decode_row(const TensorView& view, int64_t row, float* dst);

// dst: [n_elements] f32. The same of all rows.
void decode_rows(const TensorView& view, float* dst);

// Decodes n elements, of types that have a row header a row. REQUIRES: dtype is a weight type, n a multiple of its
// block_elements.
void decode_elements(DType dtype, const std::byte* src, int64_t n, float* dst);

}  // namespace candor
