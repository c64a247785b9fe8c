#include "image/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "image/canvas.h"
#include "image/geometry.h"
#include "image/resize.h"

namespace candor::image {
namespace {

// One image on its way through a recipe.
class Preparation {
 public:
  Preparation(Canvas image, const Recipe& recipe) : image_(std::move(image)), recipe_(recipe) {
    prepared_.original = image_.size();
  }

  Result<Prepared> run() {
    CANDOR_TRY(std::visit([&](const auto& layout) { return lay_out(layout); }, recipe_.layout));
    return std::move(prepared_);
  }

 private:
  Size original() const { return prepared_.original; }

  Result<void> lay_out(const FixedSize& layout) { return add_whole(image_, layout.size); }

  Result<void> lay_out(const PanAndScan& layout) {
    CANDOR_TRY(add_whole(image_, layout.size));
    const Size grid = scan_grid(original(), layout);
    if (grid == Size{}) return {};
    set_grid(grid, original());
    const int32_t width = (image_.width + grid.width - 1) / grid.width;
    const int32_t height = (image_.height + grid.height - 1) / grid.height;
    for (int32_t i = 0; i < grid.width * grid.height; ++i) {
      const int32_t left = i % grid.width * width;
      const int32_t top = i / grid.width * height;
      const Box box{left, top, std::min(width, image_.width - left), std::min(height, image_.height - top)};
      CANDOR_ASSIGN(const Canvas part, crop(image_, box));
      CANDOR_ASSIGN(const Canvas tile, resize(part, layout.size, recipe_.filter));
      CANDOR_TRY(add(tile));
    }
    return {};
  }

  Result<void> lay_out(const ShortestEdge& layout) {
    CANDOR_ASSIGN(Canvas resized, resize(image_, with_short_side(original(), layout.edge), recipe_.filter));
    if (layout.crop != Size{}) {
      CANDOR_ASSIGN(resized, center_crop(resized, layout.crop));
    }
    return add_only(resized);
  }

  Result<void> lay_out(const SquareTiles& layout) {
    const Size side{.height = layout.tile_side, .width = layout.tile_side};
    const Size first = layout.longest_edge > 0 ? with_long_side(original(), layout.longest_edge) : layout.size;
    CANDOR_ASSIGN(Canvas resized, resize(image_, first, recipe_.filter));
    if (!layout.is_split) return add_whole(resized, side);
    CANDOR_ASSIGN(resized, resize(resized, in_tiles(first, layout.tile_side), recipe_.filter));
    return add_grid(resized, side, resized, side);
  }

  Result<void> lay_out(const SmartSize& layout) {
    CANDOR_ASSIGN(const Size size, smart_size(original(), layout, recipe_.patch_side));
    return add_whole(image_, size);
  }

  Result<void> lay_out(const LongestEdge& layout) {
    return add_whole(image_, within_bound(original(), layout, recipe_.patch_side));
  }

  Result<void> lay_out(const TokenBudget& layout) {
    return add_whole(image_, within_budget(original(), layout, recipe_.patch_side));
  }

  Result<void> lay_out(const BoundedEdges& layout) {
    if (!layout.is_split) return add_whole(image_, between_edges(original(), layout));
    set_grid({.height = 2, .width = 2}, original());
    const int32_t x = image_.width / 2, y = image_.height / 2;
    const Box quarters[] = {{0, 0, x, y},
                            {x, 0, image_.width - x, y},
                            {0, y, x, image_.height - y},
                            {x, y, image_.width - x, image_.height - y}};
    for (const Box& box : quarters) {
      CANDOR_ASSIGN(const Canvas part, crop(image_, box));
      CANDOR_TRY(add_in_size(part, between_edges({.height = part.height, .width = part.width}, layout)));
    }
    prepared_.whole_tile = static_cast<int32_t>(prepared_.tiles.size());
    return add_in_size(image_, between_edges(original(), layout));
  }

  Result<void> lay_out(const ShapedTiles& layout) {
    const Size grid = shaped_grid(original(), layout);
    const Size size{.height = grid.height * layout.tile.height, .width = grid.width * layout.tile.width};
    CANDOR_TRY(check_tiles(size));
    CANDOR_ASSIGN(const Canvas resized, resize(image_, size, recipe_.filter));
    return add_grid(resized, layout.tile, image_, layout.tile);
  }

  Result<void> lay_out(const SmartTiles& layout) {
    const Size grid = smart_grid(original(), layout, recipe_.patch_side);
    CANDOR_ASSIGN(const Size whole, smart_whole(original(), layout.whole, recipe_.patch_side));
    if (grid.height * grid.width == 1) return add_whole(image_, whole);
    const Size tile{.height = layout.tile_side, .width = layout.tile_side};
    const Size size{.height = grid.height * tile.height, .width = grid.width * tile.width};
    CANDOR_TRY(check_tiles(size));
    CANDOR_ASSIGN(const Canvas resized, resize(image_, size, recipe_.filter));
    return add_grid(resized, tile, image_, whole);
  }

  Result<void> lay_out(const FittedTiles& layout) {
    const Size grid = fitted_grid(original(), layout);
    const Size tile{.height = layout.tile_side, .width = layout.tile_side};
    const Size canvas{.height = grid.height * tile.height, .width = grid.width * tile.width};
    CANDOR_TRY(check_tiles(canvas));
    CANDOR_ASSIGN(const Canvas resized, resize(image_, fitted_size(original(), grid, layout), recipe_.filter));
    CANDOR_ASSIGN(const Canvas padded, crop(resized, {0, 0, canvas.width, canvas.height}));
    return add_grid(padded, tile, image_, tile);
  }

  Result<void> lay_out(const CanvasTiles& layout) {
    if (layout.canvases.empty()) return fail(ErrorKind::kInvalidInput, "the recipe has no canvas for an image");
    const Size canvas = best_canvas(original(), layout);
    const Size tile{.height = layout.tile_side, .width = layout.tile_side};
    CANDOR_TRY(check_tiles(canvas));
    CANDOR_ASSIGN(const Canvas resized, resize(image_, size_on_canvas(original(), canvas), recipe_.filter));
    const Box middle{(resized.width - canvas.width) / 2, (resized.height - canvas.height) / 2, canvas.width,
                     canvas.height};
    CANDOR_ASSIGN(const Canvas padded, crop(resized, middle));
    return add_parts(padded, tile, image_, tile);
  }

  // As add_parts(); but one tile is the whole.
  Result<void> add_grid(const Canvas& resized, Size tile, const Canvas& whole, Size whole_size) {
    const bool is_one = resized.height / tile.height == 1 && resized.width / tile.width == 1;
    return is_one ? add_only(resized) : add_parts(resized, tile, whole, whole_size);
  }

  // The tiles of an image that they divide, and `whole` in a size of its own behind them.
  Result<void> add_parts(const Canvas& resized, Size tile, const Canvas& whole, Size whole_size) {
    const Size grid{.height = resized.height / tile.height, .width = resized.width / tile.width};
    const int64_t n_tiles = int64_t{grid.height} * grid.width;
    if (n_tiles > kMostTiles) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("an image of {} x {} pixels becomes {} tiles, at most {} are made; lower the sizes in "
                              "preprocessor_config.json",
                              image_.width, image_.height, n_tiles, kMostTiles));
    }
    set_grid(grid, resized.size());
    for (int32_t row = 0; row < grid.height; ++row) {
      for (int32_t col = 0; col < grid.width; ++col) {
        CANDOR_ASSIGN(const Canvas part, crop(resized, {col * tile.width, row * tile.height, tile.width, tile.height}));
        CANDOR_TRY(add(part));
      }
    }
    CANDOR_ASSIGN(const Canvas last, resize(whole, whole_size, recipe_.filter));
    prepared_.whole_tile = static_cast<int32_t>(prepared_.tiles.size());
    return add(last);
  }

  Result<void> add_in_size(const Canvas& image, Size size) {
    CANDOR_TRY(check_tiles(size));
    CANDOR_ASSIGN(const Canvas resized, resize(image, size, recipe_.filter));
    return add(resized);
  }

  Result<void> add_whole(const Canvas& image, Size size) {
    CANDOR_TRY(check_tiles(size));
    CANDOR_ASSIGN(const Canvas resized, resize(image, size, recipe_.filter));
    return add_only(resized);
  }

  Result<void> add_only(const Canvas& image) {
    prepared_.resized = image.size();
    return add(image);
  }

  Result<void> add(const Canvas& tile) {
    const Size size = tile.size();
    CANDOR_TRY(check_tiles(size));
    if (std::min(size.height, size.width) < recipe_.patch_side) {
      return fail(
          ErrorKind::kInvalidInput,
          fmt::format("an image of {} x {} pixels becomes {} x {}, less than a patch of {} pixels; use another image",
                      image_.width, image_.height, size.width, size.height, recipe_.patch_side));
    }
    n_pixels_ += int64_t{size.height} * size.width;
    prepared_.tiles.push_back(tile.has_pixels()
                                  ? cut_patches(tile.pixels, recipe_.patch_side, recipe_.normalisation)
                                  : Tile{size.height / recipe_.patch_side, size.width / recipe_.patch_side});
    Tile& added = prepared_.tiles.back();
    const Box whole{.width = added.cols * recipe_.patch_side, .height = added.rows * recipe_.patch_side};
    added.from = part_of(tile, whole);
    return {};
  }

  void set_grid(Size grid, Size resized) {
    prepared_.n_tile_rows = grid.height;
    prepared_.n_tile_cols = grid.width;
    prepared_.resized = resized;
  }

  // Whether so many pixels more may become numbers.
  Result<void> check_tiles(Size size) const {
    CANDOR_TRY(check_size(size));
    if (n_pixels_ + int64_t{size.height} * size.width <= kMostTilePixels) return {};
    return fail(ErrorKind::kInvalidInput,
                fmt::format("an image of {} x {} pixels becomes more than {} for the vision tower; lower the sizes in "
                            "preprocessor_config.json",
                            image_.width, image_.height, kMostTilePixels));
  }

  Canvas image_;
  const Recipe& recipe_;
  Prepared prepared_{};
  int64_t n_pixels_ = 0;
};

Result<void> check_patch(const Recipe& recipe) {
  if (recipe.patch_side >= 1) return {};
  return fail(ErrorKind::kInvalidInput, "a patch has no pixels: set its side in the recipe");
}

}  // namespace

Result<Prepared> prepare(View image, const Recipe& recipe) {
  CANDOR_TRY(check(image));
  CANDOR_TRY(check_patch(recipe));
  return Preparation(Canvas::of(image), recipe).run();
}

Result<Prepared> prepare_sizes(Size image, const Recipe& recipe) {
  CANDOR_TRY(check_size(image));
  CANDOR_TRY(check_patch(recipe));
  return Preparation(Canvas::of(image), recipe).run();
}

}  // namespace candor::image
