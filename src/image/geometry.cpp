#include "image/geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace candor::image {
namespace {

// Sides are at most kMostSide and bounds are checked where they are read; what is more than an image may have stays so.
int32_t to_side(double length) {
  return static_cast<int32_t>(std::clamp(length, 0.0, 1e9));
}

int32_t multiple_above(int32_t length, int32_t step) {
  return to_side(std::ceil(static_cast<double>(length) / step) * step);
}

}  // namespace

Size with_short_side(Size image, int32_t edge) {
  const auto [short_side, long_side] = std::minmax(image.height, image.width);
  // The product is an integer in the reference; it stays below 2^53.
  const int32_t new_long = to_side(static_cast<double>(int64_t{edge} * long_side) / short_side);
  return image.width <= image.height ? Size{.height = new_long, .width = edge}
                                     : Size{.height = edge, .width = new_long};
}

Size with_long_side(Size image, int32_t edge) {
  constexpr int32_t kMost = 4096;
  const double ratio = static_cast<double>(image.width) / image.height;
  Size size;
  if (image.width >= image.height) {
    size = {.height = to_side(edge / ratio), .width = edge};
    size.height += size.height % 2;
  } else {
    size = {.height = edge, .width = to_side(edge * ratio)};
    size.width += size.width % 2;
  }
  size = {.height = std::max(size.height, 1), .width = std::max(size.width, 1)};
  const double new_ratio = static_cast<double>(size.width) / size.height;
  if (size.width >= size.height && size.width > kMost) {
    size = {.height = to_side(kMost / new_ratio), .width = kMost};
  } else if (size.height > size.width && size.height > kMost) {
    size = {.height = kMost, .width = to_side(kMost * new_ratio)};
  }
  return {.height = std::max(size.height, 1), .width = std::max(size.width, 1)};
}

Size in_tiles(Size image, int32_t side) {
  const double ratio = static_cast<double>(image.width) / image.height;
  if (image.width >= image.height) {
    const int32_t width = multiple_above(image.width, side);
    return {.height = multiple_above(to_side(width / ratio), side), .width = width};
  }
  const int32_t height = multiple_above(image.height, side);
  return {.height = height, .width = multiple_above(to_side(height * ratio), side)};
}

Result<Size> smart_size(Size image, const SmartSize& layout, int32_t patch_side) {
  const double height = image.height, width = image.width;
  const double factor = static_cast<double>(patch_side) * layout.merge;
  const double ratio = std::max(height, width) / std::min(height, width);
  if (ratio > 200) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("an image of {} x {} pixels: one side may be 200 times the other at most; use another image",
                    image.width, image.height));
  }
  double new_height = std::nearbyint(height / factor) * factor;
  double new_width = std::nearbyint(width / factor) * factor;
  if (new_height * new_width > static_cast<double>(layout.max_pixels)) {
    const double beta = std::sqrt(height * width / static_cast<double>(layout.max_pixels));
    new_height = std::max(factor, std::floor(height / beta / factor) * factor);
    new_width = std::max(factor, std::floor(width / beta / factor) * factor);
  } else if (new_height * new_width < static_cast<double>(layout.min_pixels)) {
    const double beta = std::sqrt(static_cast<double>(layout.min_pixels) / (height * width));
    new_height = std::ceil(height * beta / factor) * factor;
    new_width = std::ceil(width * beta / factor) * factor;
  }
  return Size{.height = to_side(new_height), .width = to_side(new_width)};
}

Result<Size> smart_whole(Size image, const SmartSize& layout, int32_t patch_side) {
  const double height = image.height, width = image.width;
  const double factor = static_cast<double>(patch_side) * layout.merge;
  const auto most = static_cast<double>(layout.max_pixels);
  const auto least = static_cast<double>(layout.min_pixels);
  double new_height = std::max(factor, std::nearbyint(height / factor) * factor);
  double new_width = std::max(factor, std::nearbyint(width / factor) * factor);
  if (new_height * new_width > most) {
    const double beta = std::sqrt(height * width / most);
    new_height = std::max(factor, std::floor(height / beta / factor) * factor);
    new_width = std::max(factor, std::floor(width / beta / factor) * factor);
  } else if (new_height * new_width < least) {
    const double beta = std::sqrt(least / (height * width));
    new_height = std::ceil(height * beta / factor) * factor;
    new_width = std::ceil(width * beta / factor) * factor;
  }
  if (new_height * new_width > most) {
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("an image of {} x {} pixels: one side is too many times the other for {} pixels in squares of "
                    "{}; use another image",
                    image.width, image.height, layout.max_pixels, factor));
  }
  return Size{.height = to_side(new_height), .width = to_side(new_width)};
}

Size smart_grid(Size image, const SmartTiles& layout, int32_t patch_side) {
  const double step = static_cast<double>(patch_side) * layout.whole.merge;
  const auto rounded = [&](int32_t side) {
    return std::max(static_cast<double>(patch_side), std::nearbyint(side / step) * step);
  };
  const double most = static_cast<double>(layout.whole.max_pixels) * layout.tolerance;
  const bool is_large = rounded(image.height) * rounded(image.width) > most;
  if (!is_large || (layout.min_tiles == 1 && layout.max_tiles == 1)) return {.height = 1, .width = 1};
  return shaped_grid(image, {{layout.tile_side, layout.tile_side}, layout.min_tiles, layout.max_tiles});
}

Size within_bound(Size image, const LongestEdge& layout, int32_t patch_side) {
  double height = image.height, width = image.width;
  const double ratio = std::max(height / layout.bound.height, width / layout.bound.width);
  if (ratio > 1) {
    height = std::floor(height / ratio);
    width = std::floor(width / ratio);
  }
  // A side of 0 becomes a patch of 0 in the reference, which then fails.
  const int32_t step = patch_side * layout.merge;
  return {.height = multiple_above(to_side(std::max(height, 1.0)), step),
          .width = multiple_above(to_side(std::max(width, 1.0)), step)};
}

// A side that would be none becomes one token, and the other as long as the shape and the budget allow.
Size within_budget(Size image, const TokenBudget& layout, int32_t patch_side) {
  const double height = image.height, width = image.width;
  const double side = static_cast<double>(patch_side) * layout.merge;
  const double factor = std::sqrt(layout.max_tokens * side * side / (height * width));
  double rows = std::floor(factor * height / side);
  double cols = std::floor(factor * width / side);
  if (rows == 0) {
    rows = 1;
    cols = std::min(std::floor(width / height), static_cast<double>(layout.max_tokens));
  } else if (cols == 0) {
    cols = 1;
    rows = std::min(std::floor(height / width), static_cast<double>(layout.max_tokens));
  }
  return {.height = to_side(rows * side), .width = to_side(cols * side)};
}

Size between_edges(Size image, const BoundedEdges& layout) {
  const double ratio = static_cast<double>(image.width) / image.height;
  Size size = image;
  if (image.width >= image.height && image.width > layout.longest_edge) {
    size = {.height = to_side(layout.longest_edge / ratio), .width = layout.longest_edge};
  } else if (image.height > image.width && image.height > layout.longest_edge) {
    size = {.height = layout.longest_edge, .width = to_side(layout.longest_edge * ratio)};
  }
  return {.height = std::max(size.height, layout.shortest_edge), .width = std::max(size.width, layout.shortest_edge)};
}

Size shaped_grid(Size image, const ShapedTiles& layout) {
  std::vector<Size> grids;
  for (int32_t width = 1; width <= layout.max_tiles; ++width) {
    for (int32_t height = 1; width * height <= layout.max_tiles; ++height) {
      if (width * height >= layout.min_tiles) grids.push_back({.height = height, .width = width});
    }
  }
  std::ranges::stable_sort(grids, {}, [](Size grid) { return grid.width * grid.height; });
  const double ratio = static_cast<double>(image.width) / image.height;
  const double area = static_cast<double>(image.width) * image.height;
  double best_distance = std::numeric_limits<double>::infinity();
  Size best{.height = 1, .width = 1};
  for (const Size grid : grids) {
    const double distance = std::abs(ratio - static_cast<double>(grid.width) / grid.height);
    const double tile_area = 0.5 * layout.tile.height * layout.tile.width * grid.width * grid.height;
    if (distance > best_distance || (distance == best_distance && area <= tile_area)) continue;
    best_distance = distance;
    best = grid;
  }
  return best;
}

Size scan_grid(Size image, const PanAndScan& layout) {
  const bool is_wide = image.width >= image.height;
  const int32_t long_side = is_wide ? image.width : image.height;
  const int32_t short_side = is_wide ? image.height : image.width;
  const double ratio = static_cast<double>(long_side) / short_side;
  if (ratio < layout.min_ratio) return {};
  int32_t n_crops = std::min(long_side / layout.min_crop_side, to_side(std::floor(ratio + 0.5)));
  n_crops = std::min(layout.max_crops, std::max(2, n_crops));
  if (n_crops < 1) return {};
  const int32_t crop_side = (long_side + n_crops - 1) / n_crops;
  if (std::min(crop_side, short_side) < layout.min_crop_side) return {};
  return is_wide ? Size{.height = 1, .width = n_crops} : Size{.height = n_crops, .width = 1};
}

}  // namespace candor::image
