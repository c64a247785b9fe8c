#pragma once
// The packed unit (256 k of 16 outputs) of formats whose codes name vectors of a grid (tensor/quant/grid.h): no more
// bytes than the file's, but that seven signs become eight and IQ1's shifts are as many as its vectors. In this order,
// r = row of the panel:
//   d f16[16]
//   sub-scales [n_groups / 2][16]: s_i | s_{i + n_groups / 2} << 4
//   indices, their 8 low bits, in pairs: [256 / span / 2][16][2]
//   their b high bits, if any: [256 / span * b / 8][16], index i at bit i * b % 8
//   signs, if any: a plane of single bits (packed_format.h)
// Pure functions, any thread.

#include <cstddef>

#include "kernels/packed_weight.h"
#include "tensor/quant/grid.h"
#include "tensor/weight_formats.h"

namespace candor::kernels {

using quant::GridCodes;
using quant::GridFormat;

// REQUIRES: a dtype whose family is kGrids.
constexpr GridFormat grid_format_of(DType dtype) {
  GridFormat format{};
  visit_block(
      dtype,
      [&]<class Block>(BlockType<Block>) {
        if constexpr (quant::IsGrid<Block>) format = Block::kGrid;
      },
      WeightBlocks{});
  return format;
}

constexpr int n_indices(const GridFormat& f) {
  return kUnit / f.span;
}
// Offsets of the parts of a unit.
constexpr int grid_scales_at(const GridFormat&) {
  return 2 * kPanelRows;
}
constexpr int grid_indices_at(const GridFormat& f) {
  return grid_scales_at(f) + f.n_groups / 2 * kPanelRows;
}
constexpr int grid_high_bits_at(const GridFormat& f) {
  return grid_indices_at(f) + n_indices(f) * kPanelRows;
}
constexpr int grid_signs_at(const GridFormat& f) {
  return grid_high_bits_at(f) + n_indices(f) * (f.index_bits - 8) / 8 * kPanelRows;
}
constexpr size_t grid_unit_bytes(const GridFormat& f) {
  return static_cast<size_t>(grid_signs_at(f) + (f.sign_bits > 0 ? kUnit / 8 * kPanelRows : 0));
}

// Panel `panel` of the file's tensor. dst: zeros where rows are missing.
void pack_grid_panel(const WeightShape& shape, const std::byte* src, int64_t first_row, std::byte* dst);

// dst: [n_in] f32, the file's values of one row of a panel.
void decode_grid_row(const WeightShape& shape, const std::byte* panel, int64_t row, float* dst);

}  // namespace candor::kernels
