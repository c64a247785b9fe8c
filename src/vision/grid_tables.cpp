#include "vision/grid_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

Result<std::vector<float>> read_matrix(const formats::ModelFile& file, std::string_view name, int64_t rows,
                                       int64_t cols) {
  return read_floats(file, name, {2, {rows, cols}});
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

std::vector<float> nearest_positions(std::span<const float> table, int32_t side, int32_t rows, int32_t cols) {
  const size_t dim = table.size() / (static_cast<size_t>(side) * static_cast<size_t>(side));
  const auto bucket = [side](int32_t i, int32_t n) {
    const float place = std::min(static_cast<float>(i) * (1.0f / static_cast<float>(n)), 1.0f - 1e-6f);
    int32_t found = 0;
    while (found + 1 < side && static_cast<float>((found + 1) * (1.0 / side)) <= place) ++found;
    return static_cast<size_t>(found);
  };
  std::vector<float> out;
  out.reserve(static_cast<size_t>(rows) * static_cast<size_t>(cols) * dim);
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < cols; ++c) {
      const size_t row = bucket(r, rows) * static_cast<size_t>(side) + bucket(c, cols);
      const std::span<const float> from = table.subspan(row * dim, dim);
      out.insert(out.end(), from.begin(), from.end());
    }
  }
  return out;
}

std::vector<float> stretch(std::span<const float> table, int32_t side, int32_t rows, int32_t cols, int32_t dim) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(rows) * static_cast<size_t>(cols) * static_cast<size_t>(dim));
  const auto place_of = [side](int32_t i, int32_t n) {
    const float at = n > 1 ? static_cast<float>(i) * (static_cast<float>(side - 1) / static_cast<float>(n - 1)) : 0.0f;
    const int32_t low = std::min(static_cast<int32_t>(at), side - 1);
    return std::pair(low, at - static_cast<float>(low));
  };
  const auto row_at = [&](int32_t y, int32_t x) {
    const int32_t row = std::min(y, side - 1) * side + std::min(x, side - 1);
    return table.data() + static_cast<size_t>(row) * static_cast<size_t>(dim);
  };
  for (int32_t r = 0; r < rows; ++r) {
    const auto [y, dy] = place_of(r, rows);
    for (int32_t c = 0; c < cols; ++c) {
      const auto [x, dx] = place_of(c, cols);
      const float* corner[] = {row_at(y, x), row_at(y, x + 1), row_at(y + 1, x), row_at(y + 1, x + 1)};
      const float share[] = {(1 - dy) * (1 - dx), (1 - dy) * dx, dy * (1 - dx), dy * dx};
      for (int32_t d = 0; d < dim; ++d) {
        float sum = 0.0f;
        for (size_t i = 0; i < 4; ++i) sum += corner[i][d] * share[i];
        out.push_back(sum);
      }
    }
  }
  return out;
}

namespace {

// The places of a line of n_in that one of n_out is made of, and their shares.
struct LineTaps {
  int32_t first = 0;
  std::vector<double> shares{};
};

std::vector<LineTaps> taps_of(int32_t n_in, int32_t n_out) {
  const double scale = static_cast<double>(n_in) / n_out;
  const double support = std::max(scale, 1.0);
  std::vector<LineTaps> line(static_cast<size_t>(n_out));
  for (int32_t at = 0; at < n_out; ++at) {
    LineTaps& taps = line[static_cast<size_t>(at)];
    const double centre = (at + 0.5) * scale - 0.5;
    taps.first = std::max(static_cast<int32_t>(std::ceil(centre - support)), 0);
    double sum = 0.0;
    for (int32_t i = taps.first; i < n_in && i <= centre + support; ++i) {
      taps.shares.push_back(std::max(1.0 - std::fabs(i - centre) / support, 0.0));
      sum += taps.shares.back();
    }
    for (double& share : taps.shares) share /= sum;
  }
  return line;
}

}  // namespace

std::vector<float> resize_positions(std::span<const float> table, int32_t side, int32_t rows, int32_t cols) {
  const size_t dim = table.size() / (static_cast<size_t>(side) * static_cast<size_t>(side));
  const std::vector<LineTaps> across = taps_of(side, cols);
  std::vector<float> resized;
  resized.reserve(static_cast<size_t>(rows) * static_cast<size_t>(cols) * dim);
  const size_t line = static_cast<size_t>(side) * dim;
  for (const LineTaps& down : taps_of(side, rows)) {
    std::vector<double> row(line);
    for (size_t i = 0; i < down.shares.size(); ++i) {
      const float* from = table.data() + (static_cast<size_t>(down.first) + i) * line;
      for (size_t j = 0; j < line; ++j) row[j] += down.shares[i] * from[j];
    }
    for (const LineTaps& taps : across) {
      std::vector<double> sums(dim);
      for (size_t i = 0; i < taps.shares.size(); ++i) {
        const double* from = row.data() + (static_cast<size_t>(taps.first) + i) * dim;
        for (size_t d = 0; d < dim; ++d) sums[d] += taps.shares[i] * from[d];
      }
      for (const double sum : sums) resized.push_back(static_cast<float>(sum));
    }
  }
  return resized;
}

}  // namespace candor::vision
