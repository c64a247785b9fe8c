#pragma once
// The order in which a step has the patches of a tile: window by window, each line by line. Pure; any thread.

#include <cstdint>
#include <vector>

#include "image/patches.h"

namespace candor::vision {

struct TileOrder {
  std::vector<int32_t> patches;  // numbered line by line
  std::vector<int32_t> borders;  // of windows, from 0 to the number of patches
};

// side: of a window, in patches; 0: the whole tile is one.
TileOrder order_of(const image::Tile& tile, int32_t side);

}  // namespace candor::vision
