#include "vision/row_regions.h"

#include <cstddef>

#include "image/geometry.h"

namespace candor::vision {
namespace {

// As lines_of() orders them (vision/row_grids.h).
std::vector<RowGrid> grids_of_lines(const image::Prepared& prepared) {
  const image::Tile& whole = prepared.tiles[static_cast<size_t>(prepared.whole_tile)];
  const image::Tile& first = prepared.tiles.front();
  const image::Part part =
      image::unpadded(prepared.original, {prepared.n_tile_rows * first.rows, prepared.n_tile_cols * first.cols});
  const double width = first.from.width / first.cols;
  const double height = first.from.height / first.rows;
  const image::Region from{first.from.left + part.left * width, first.from.top + part.top * height, part.width * width,
                           part.height * height};
  return {{.rows = whole.rows, .cols = whole.cols, .from = whole.from, .is_whole = true},
          {.rows = part.height, .cols = part.width, .n_behind = 1, .from = from}};
}

}  // namespace

std::vector<RowGrid> row_grids(const VisionSpec& spec, const image::Prepared& prepared) {
  if (!spec.newline.empty()) return grids_of_lines(prepared);
  const int32_t n = spec.regroup.kind == RegroupKind::kNone ? 1 : spec.regroup.n;
  std::vector<RowGrid> grids;
  for (size_t i = 0; i < prepared.tiles.size(); ++i) {
    const image::Tile& tile = prepared.tiles[i];
    RowGrid grid{.rows = tile.rows / n, .cols = tile.cols / n, .from = tile.from};
    grid.from.width *= static_cast<double>(grid.cols * n) / tile.cols;
    grid.from.height *= static_cast<double>(grid.rows * n) / tile.rows;
    if (spec.resampler.n_rows > 0) grid.rows = grid.cols = 1, grid.n_each = spec.resampler.n_rows;
    grid.is_whole = prepared.tiles.size() > 1 && static_cast<size_t>(prepared.whole_tile) == i;
    grids.push_back(grid);
  }
  return grids;
}

}  // namespace candor::vision
