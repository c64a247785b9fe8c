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

Size fitted_grid(Size image, const FittedTiles& layout) {
  const auto scale_of = [&](Size grid) {
    const auto down = static_cast<float>(grid.height * layout.tile_side) / static_cast<float>(image.height);
    const auto across = static_cast<float>(grid.width * layout.tile_side) / static_cast<float>(image.width);
    return std::min(down, across);
  };
  Size best{.height = 1, .width = 1};
  const auto is_better = [&](Size grid) {
    const float scale = scale_of(grid);
    const float best_scale = scale_of(best);
    if ((scale >= 1) != (best_scale >= 1)) return scale >= 1;
    if (scale == best_scale) return grid.height * grid.width < best.height * best.width;
    const bool wants_more = scale < 1 || layout.is_largest;
    return (scale > best_scale) == wants_more;
  };
  for (int32_t height = 1; height <= layout.max_tiles; ++height) {
    for (int32_t width = 1; width * height <= layout.max_tiles; ++width) {
      const Size grid{.height = height, .width = width};
      if (is_better(grid)) best = grid;
    }
  }
  return best;
}

Size fitted_size(Size image, Size grid, const FittedTiles& layout) {
  // The reference has a canvas's sides as f32, an image's own as f64.
  struct Side {
    int32_t image;
    int32_t target;
    bool is_canvas;
    double scale() const {
      if (is_canvas) return static_cast<float>(target) / static_cast<float>(image);
      return static_cast<double>(target) / image;
    }
  };
  const auto limited = [&](int32_t length, int32_t n_tiles) -> Side {
    const int32_t canvas = n_tiles * layout.tile_side;
    const int32_t most = std::max(length, layout.tile_side);
    const bool is_canvas = layout.is_largest || canvas < most;
    return {length, is_canvas ? canvas : most, is_canvas};
  };
  const Side down = limited(image.height, grid.height);
  const Side across = limited(image.width, grid.width);
  const bool is_f32 = down.is_canvas || across.is_canvas;
  const bool is_narrow =
      is_f32 ? static_cast<float>(across.scale()) < static_cast<float>(down.scale()) : across.scale() < down.scale();
  const Side& fixed = is_narrow ? across : down;
  const Side& other = is_narrow ? down : across;
  const double product = other.image * fixed.scale();
  const double length = std::floor(fixed.is_canvas ? static_cast<double>(static_cast<float>(product)) : product);
  const int32_t free = std::max(std::min(to_side(length), other.target), 1);
  return is_narrow ? Size{.height = free, .width = fixed.target} : Size{.height = fixed.target, .width = free};
}

Size best_canvas(Size image, const CanvasTiles& layout) {
  const double height = image.height, width = image.width;
  Size best = layout.canvases.front();
  double most_kept = 0;
  double least_wasted = std::numeric_limits<double>::infinity();
  for (const Size canvas : layout.canvases) {
    const double scale = std::min(canvas.width / width, canvas.height / height);
    const double kept = std::min(std::floor(width * scale) * std::floor(height * scale), width * height);
    const double wasted = static_cast<double>(canvas.width) * canvas.height - kept;
    if (kept < most_kept || (kept == most_kept && wasted >= least_wasted)) continue;
    most_kept = kept;
    least_wasted = wasted;
    best = canvas;
  }
  return best;
}

Size size_on_canvas(Size image, Size canvas) {
  const double across = static_cast<double>(canvas.width) / image.width;
  const double down = static_cast<double>(canvas.height) / image.height;
  if (across < down) {
    return {.height = std::min(to_side(std::ceil(image.height * across)), canvas.height), .width = canvas.width};
  }
  return {.height = canvas.height, .width = std::min(to_side(std::ceil(image.width * down)), canvas.width)};
}

Part unpadded(Size image, Size grid) {
  const double height = image.height, width = image.width;
  const auto scaled = [](double length) { return to_side(std::floor(std::nearbyint(length * 1e7) / 1e7)); };
  Part part{0, 0, grid.height, grid.width};
  if (width / height > static_cast<double>(grid.width) / grid.height) {
    part.top = (grid.height - scaled(height * (grid.width / width))) / 2;
    part.height -= 2 * part.top;
  } else {
    part.left = (grid.width - scaled(width * (grid.height / height))) / 2;
    part.width -= 2 * part.left;
  }
  return part;
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
