#pragma once
// From bytes to the rows of numbers that a vision tower multiplies by its first weight. Any thread.

#include <cstdint>
#include <vector>

#include "image/image.h"
#include "image/recipe.h"

namespace candor::image {

// One picture for the tower.
struct Tile {
  int32_t rows = 0;  // of patches
  int32_t cols = 0;
  std::vector<float>
      patches{};  // [rows * cols, 3 * p * p]: patches row by row; in one: channel, y, x, as a conv has it
  Region from{};  // what the patches show together, of the image that was given
};

// What is left of the sides beyond whole patches is dropped, as by a convolution. REQUIRES: side > 0.
Tile cut_patches(View image, int32_t side, const Normalisation& normalisation);

// The number that each byte becomes, for each channel; its order of operations is in recipe.h.
std::array<std::array<float, 256>, 3> normalised_bytes(const Normalisation& normalisation);

}  // namespace candor::image
