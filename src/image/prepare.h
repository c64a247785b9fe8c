#pragma once
// An image as a vision tower reads it. The results equal those of transformers 5's image processors: pixels those of
// the processors that resize with Pillow (resize.h says how far torchvision's are from them), numbers and the place of
// black borders those of the torchvision ones (recipe.h, frame.h). Pure: the same bits with every thread and machine.
// Any thread.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "image/image.h"
#include "image/patches.h"
#include "image/recipe.h"

namespace candor::image {

// The most pixels of all tiles of an image: 384 MiB of numbers.
inline constexpr int64_t kMostTilePixels = int64_t{32} << 20;
inline constexpr int64_t kMostTiles = 1024;

struct Prepared {
  std::vector<Tile> tiles{};  // the whole image is one of them, or the only one
  int32_t whole_tile = 0;     // its index: the last of tiles, the first before crops
  int32_t n_tile_rows = 0;    // the grid of the others; 0 x 0 where there are none
  int32_t n_tile_cols = 0;
  Size original{};
  Size resized{};  // what the grid was cut from; without a grid, the tile's pixels
};

// kInvalidInput where the image, or what it would become, has too many pixels, too few for one patch, or a shape that
// the recipe refuses. Nothing is allocated before its size is checked.
Result<Prepared> prepare(View image, const Recipe& recipe);
// The same of an image whose size alone is known: tiles without numbers.
Result<Prepared> prepare_sizes(Size image, const Recipe& recipe);

}  // namespace candor::image
