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
  return tile;
}

}  // namespace

std::vector<ImageAttention> image_attention(const ActiveRequest& request, std::span<const double> shares) {
  std::vector<ImageAttention> images;
  if (shares.empty()) return images;
  for (const PlacedTile& placed : request.images) {
    const image::Prepared& prepared = placed.image->prepared();
    if (placed.first_row == 0) {
      images.push_back({.image_width = prepared.original.width, .image_height = prepared.original.height});
    }
    ImageAttention& image = images.back();
    ImageAttention::Tile& tile = image.tiles.emplace_back(tile_of(placed.image->grids()[image.tiles.size()]));
    for (int32_t i = 0; i < placed.rows.n_rows; ++i) {
      const auto position = static_cast<size_t>(placed.rows.first + i);
      const double share = position < shares.size() ? shares[position] : 0.0;
      tile.shares.push_back(static_cast<float>(share));
      image.share += share;
    }
  }
  return images;
}

}  // namespace candor::engine
