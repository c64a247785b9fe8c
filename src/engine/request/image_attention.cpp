#include "engine/request/image_attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace candor::engine {
namespace {

ImageAttention::Tile tile_of(const vision::RowGrid& grid) {
  ImageAttention::Tile tile{.rows = grid.rows, .cols = grid.cols};
  tile.left = grid.from.left;
  tile.top = grid.from.top;
  tile.width = grid.from.width;
  tile.height = grid.from.height;
  tile.is_whole = grid.is_whole;
  tile.shares.resize(static_cast<size_t>(grid.rows) * static_cast<size_t>(grid.cols));
  return tile;
}

// row: of the image.
void add_share(std::span<const vision::RowGrid> grids, int32_t row, double share, ImageAttention& image) {
  size_t at = 0;
  while (row >= grids[at].n_rows()) row -= grids[at++].n_rows();
  const int32_t patch = grids[at].patch_of(row);
  if (patch < 0) return;
  image.tiles[at].shares[static_cast<size_t>(patch)] += static_cast<float>(share);
  image.share += share;
}

}  // namespace

std::vector<ImageAttention> image_attention(const ActiveRequest& request, std::span<const double> shares) {
  std::vector<ImageAttention> images;
  if (shares.empty()) return images;
  for (const PlacedTile& placed : request.images) {
    const std::span<const vision::RowGrid> grids = placed.image->grids();
    if (placed.first_row == 0) {
      const image::Size size = placed.image->prepared().original;
      images.push_back({.image_width = size.width, .image_height = size.height});
      for (const vision::RowGrid& grid : grids) images.back().tiles.push_back(tile_of(grid));
    }
    for (int32_t i = 0; i < placed.rows.n_rows; ++i) {
      const auto position = static_cast<size_t>(placed.rows.first + i);
      if (position < shares.size()) add_share(grids, placed.first_row + i, shares[position], images.back());
    }
  }
  return images;
}

}  // namespace candor::engine
