#pragma once
// Which part of an image each of its rows in the text model shows: a grid for each tile, row by row, in the order of
// the prompt. Pure; any thread.

#include <cstdint>
#include <vector>

#include "image/image.h"
#include "image/prepare.h"
#include "vision/vision_spec.h"

namespace candor::vision {

// The rows of one tile, by the patches that they show. Parts that a tower drops at the right and lower ends belong to
// none.
struct RowGrid {
  int32_t rows = 0;
  int32_t cols = 0;
  int32_t n_each = 1;     // rows that show the same patch, one behind another: of a resampler all show the whole tile
  int32_t n_behind = 0;   // rows behind each line, which show nothing
  image::Region from{};   // of the image that was given; outside of it where a tile is padded
  bool is_whole = false;  // the tile shows the whole image, and others show its parts in more detail

  int32_t n_rows() const { return rows * (cols * n_each + n_behind); }
  // Which patch, line by line, a row of the grid shows; -1: none.
  int32_t patch_of(int32_t row) const {
    const int32_t line = cols * n_each + n_behind;
    const int32_t col = row % line / n_each;
    return col < cols ? row / line * cols + col : -1;
  }
};

std::vector<RowGrid> row_grids(const VisionSpec& spec, const image::Prepared& prepared);

}  // namespace candor::vision
