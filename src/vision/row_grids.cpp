#include "vision/row_grids.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "image/geometry.h"

namespace candor::vision {
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
