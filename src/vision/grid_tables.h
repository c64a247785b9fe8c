#pragma once
// Tables and vectors of a tower that the host adds, in f32: positions of a grid, and what regrouped rows become. Pure;
// any thread.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "vision/vision_spec.h"

namespace candor::vision {

int64_t n_table_rows(const GridPositions& positions);

// [n_table_rows, dim]; empty where there is no table. Refuses one that is missing or of another shape, by its name.
Result<std::vector<float>> read_table(const formats::ModelFile& file, const GridPositions& positions, int32_t dim);
// [dim]; empty where there is no name.
Result<std::vector<float>> read_vector(const formats::ModelFile& file, std::string_view name, int32_t dim);

Result<std::vector<float>> read_matrix(const formats::ModelFile& file, std::string_view name, int64_t rows,
                                       int64_t cols);

// Refuses more patches in a line than a table by axis has rows for.
Result<void> check_positions(const GridPositions& positions, int32_t rows, int32_t cols);
// [rows * cols, dim] of a table by axis. REQUIRES: neither is more than `side`.
std::vector<float> sum_of_axes(std::span<const float> table, int32_t side, int32_t rows, int32_t cols);

// Of tables of side * side, [rows * cols, dim]: kNearest.
std::vector<float> nearest_positions(std::span<const float> table, int32_t side, int32_t rows, int32_t cols);
// table: [side * side, dim], stretched to [rows * cols, dim]. In f32: the four rows by ascending place, each times the
// product of its two shares.
std::vector<float> stretch(std::span<const float> table, int32_t side, int32_t rows, int32_t cols, int32_t dim);

// table: [side * side, dim] of GridPositions; in the size of a tile, [rows * cols, dim].
std::vector<float> resize_positions(std::span<const float> table, int32_t side, int32_t rows, int32_t cols);

}  // namespace candor::vision
