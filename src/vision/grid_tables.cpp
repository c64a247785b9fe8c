#include "vision/grid_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "tensor/tensor_view.h"

namespace candor::vision {
namespace {

Result<std::vector<float>> read_floats(const formats::ModelFile& file, std::string_view name, const Shape& expected) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr || tensor->shape != expected) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("tensor \"{}\" {}; expected {}", name,
                    tensor == nullptr ? "is missing" : "has shape " + to_string(tensor->shape), to_string(expected)));
  }
  std::vector<float> values(static_cast<size_t>(tensor->shape.n_elements()));
  if (expected.n_dims == 2) {
    decode_rows(*tensor, values.data());
  } else {
    decode_elements(tensor->dtype, tensor->data, tensor->shape.n_elements(), values.data());
  }
  return values;
}

}  // namespace

int64_t n_table_rows(const GridPositions& positions) {
  if (positions.table.empty()) return 0;
  return int64_t{positions.side} * (positions.kind == PositionKind::kByAxis ? 2 : positions.side);
}

Result<std::vector<float>> read_table(const formats::ModelFile& file, const GridPositions& positions, int32_t dim) {
  if (positions.table.empty()) return std::vector<float>();
  const bool is_by_axis = positions.kind == PositionKind::kByAxis;
  const Shape expected = is_by_axis ? Shape{3, {2, positions.side, dim}} : Shape{2, {n_table_rows(positions), dim}};
  return read_floats(file, positions.table, expected);
}

Result<std::vector<float>> read_vector(const formats::ModelFile& file, std::string_view name, int32_t dim) {
  if (name.empty()) return std::vector<float>();
  return read_floats(file, name, {1, {dim}});
}

Result<void> check_positions(const GridPositions& positions, int32_t rows, int32_t cols) {
  if (positions.kind != PositionKind::kByAxis || std::max(rows, cols) <= positions.side) return {};
  return fail(ErrorKind::kInvalidInput,
              fmt::format("an image of {} x {} patches: the tower has positions for {} in a line; use an image of "
                          "another shape",
                          cols, rows, positions.side));
}

std::vector<float> sum_of_axes(std::span<const float> table, int32_t side, int32_t rows, int32_t cols) {
  const size_t dim = table.size() / (2 * static_cast<size_t>(side));
  const auto n_rows = static_cast<size_t>(rows);
  const auto n_cols = static_cast<size_t>(cols);
  std::vector<float> sums;
  sums.reserve(n_rows * n_cols * dim);
  for (size_t r = 0; r < n_rows; ++r) {
    const std::span<const float> down = table.subspan((static_cast<size_t>(side) + r) * dim, dim);
    for (size_t c = 0; c < n_cols; ++c) {
      const std::span<const float> across = table.subspan(c * dim, dim);
      for (size_t d = 0; d < dim; ++d) sums.push_back(across[d] + down[d]);
    }
  }
  return sums;
}

}  // namespace candor::vision
