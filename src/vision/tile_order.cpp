#include "vision/tile_order.h"

#include <algorithm>

namespace candor::vision {

TileOrder order_of(const image::Tile& tile, int32_t side) {
  const int32_t step = side == 0 ? std::max(tile.rows, tile.cols) : side;
  TileOrder order;
  order.borders.push_back(0);
  for (int32_t y = 0; y < tile.rows; y += step) {
    for (int32_t x = 0; x < tile.cols; x += step) {
      for (int32_t r = y; r < std::min(y + step, tile.rows); ++r) {
        for (int32_t c = x; c < std::min(x + step, tile.cols); ++c) order.patches.push_back(r * tile.cols + c);
      }
      order.borders.push_back(static_cast<int32_t>(order.patches.size()));
    }
  }
  return order;
}

}  // namespace candor::vision
