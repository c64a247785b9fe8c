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

// Refuses more patches in a line than a table by axis has rows for.
Result<void> check_positions(const GridPositions& positions, int32_t rows, int32_t cols);
// [rows * cols, dim] of a table by axis. REQUIRES: neither is more than `side`.
std::vector<float> sum_of_axes(std::span<const float> table, int32_t side, int32_t rows, int32_t cols);

}  // namespace candor::vision
