#include "vision/row_grids.h"

#include <algorithm>
#include <numeric>

#include "image/geometry.h"

namespace candor::vision {

std::vector<float> regroup(const Regroup& how, std::span<const float> grid, int32_t rows, int32_t cols, int32_t dim) {
  if (how.kind == RegroupKind::kNone) return {grid.begin(), grid.end()};
  const int32_t n = how.n;
  const auto width = static_cast<size_t>(how.width(dim));
  std::vector<float> out(static_cast<size_t>(how.n_rows(rows, cols)) * width);
  const auto row_at = [&](int32_t y, int32_t x) {
    return grid.subspan(
        (static_cast<size_t>(y) * static_cast<size_t>(cols) + static_cast<size_t>(x)) * static_cast<size_t>(dim),
        static_cast<size_t>(dim));
  };
  const float share = 1.0f / static_cast<float>(n * n);
  float* to = out.data();
  for (int32_t y = 0; y + n <= rows; y += n) {
    for (int32_t x = 0; x + n <= cols; x += n, to += width) {
      for (int32_t i = 0; i < n * n; ++i) {
        const std::span<const float> from = row_at(y + i / n, x + i % n);
        if (how.kind == RegroupKind::kJoin) {
          std::ranges::copy(from, to + int64_t{i} * dim);
        } else if (how.kind == RegroupKind::kUnfold) {
          for (size_t d = 0; d < from.size(); ++d)
            to[d * static_cast<size_t>(n * n) + static_cast<size_t>(i)] = from[d];
        } else {
          for (size_t d = 0; d < from.size(); ++d) to[d] += from[d];
        }
      }
      if (how.kind == RegroupKind::kAverage) std::for_each(to, to + width, [share](float& v) { v *= share; });
    }
  }
  return out;
}

std::vector<int32_t> lines_of(const image::Prepared& prepared, int32_t side) {
  const int32_t n_each = side * side;
  std::vector<int32_t> rows(static_cast<size_t>(n_each));
  std::iota(rows.begin(), rows.end(), prepared.whole_tile * n_each);
  const image::Part part =
      image::unpadded(prepared.original, {prepared.n_tile_rows * side, prepared.n_tile_cols * side});
  for (int32_t y = part.top; y < part.top + part.height; ++y) {
    for (int32_t x = part.left; x < part.left + part.width; ++x) {
      const int32_t tile = y / side * prepared.n_tile_cols + x / side;
      rows.push_back(tile * n_each + y % side * side + x % side);
    }
    rows.push_back(kNewline);
  }
  return rows;
}

}  // namespace candor::vision
