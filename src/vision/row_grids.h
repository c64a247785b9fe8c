#pragma once
// Rows that stand in a grid, as an image's patches do: neighbouring rows made one, and the order of those of several
// tiles. Pure; any thread.

#include <cstdint>
#include <span>
#include <vector>

#include "image/prepare.h"
#include "vision/vision_spec.h"

namespace candor::vision {

// Rows in a grid, [rows * cols, dim], as Regroup says. Sums of kAverage: row by row of the n x n, in f32, times 1 /
// n^2.
std::vector<float> regroup(const Regroup& how, std::span<const float> grid, int32_t rows, int32_t cols, int32_t dim);

// Of an image on a canvas (image::CanvasTiles), whose tiles have side * side rows each: which of the tiles' rows, tile
// after tile, the image's rows are. First those of the whole image; then those of the other tiles as one grid, line by
// line, without what padding covers, kNewline behind each line.
inline constexpr int32_t kNewline = -1;
std::vector<int32_t> lines_of(const image::Prepared& prepared, int32_t side);

}  // namespace candor::vision
