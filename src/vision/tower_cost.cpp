#include "vision/tower_cost.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vision/encoder.h"

namespace candor::vision {
namespace {

double matrix_elements(const RowLayersSpec& layers) {
  double sum = 0;
  double n_in = layers.n_in;
  for (const RowLayer& layer : layers.layers) {
    if (layer.kind != RowLayerKind::kLinear) continue;
    sum += n_in * layer.n_out;
    n_in = layer.n_out;
  }
  return sum;
}

// Rows that see one another, counted once for each that sees.
double pairs_in_windows(const image::Tile& tile, int32_t side) {
  double sum = 0;
  for (int32_t y = 0; y < tile.rows; y += side) {
    for (int32_t x = 0; x < tile.cols; x += side) {
      const double n = static_cast<double>(std::min(side, tile.rows - y)) * std::min(side, tile.cols - x);
      sum += n * n;
    }
  }
  return sum;
}

double pairs_of(const VisionSpec& spec, const image::Tile& tile) {
  const double n = static_cast<double>(spec.n_lead_rows) + static_cast<double>(tile.rows) * tile.cols;
  if (spec.windows.side == 0) return n * n * static_cast<double>(spec.tower.blocks.size());
  const auto n_whole = static_cast<double>(std::ranges::count(spec.windows.is_whole, true));
  const double n_windowed = static_cast<double>(spec.tower.blocks.size()) - n_whole;
  return n * n * n_whole + pairs_in_windows(tile, spec.windows.side) * n_windowed;
}

}  // namespace

TowerCost cost_of(const VisionSpec& spec, double weight_bytes, const image::Prepared& prepared) {
  constexpr double kAnyBits = 16;  // bytes are the file's
  const model::ArchCost tower = model::cost_of(spec.tower, kAnyBits);
  const double by_patch = matrix_elements(spec.entry) + tower.parameters.dense;
  double by_row = matrix_elements(spec.projector);
  for (const DeepTap& tap : spec.taps) by_row += matrix_elements(tap.projector);
  const double pair_flops = tower.attention.empty() ? 0 : tower.attention.front().pair_flops;
  TowerCost cost;
  for (const image::Tile& tile : prepared.tiles) {
    const double n_patches = static_cast<double>(tile.rows) * tile.cols;
    const double n_rows = rows_of(spec, tile);
    cost.n_patches += n_patches;
    cost.work.matrix_flops += 2 * (by_patch * (spec.n_lead_rows + n_patches) + by_row * n_rows);
    cost.work.attention_flops += pair_flops * pairs_of(spec, tile);
    cost.work.read_bytes += weight_bytes;
  }
  for (const int32_t n : rows_of_tiles(spec, prepared)) cost.n_rows += n;
  return cost;
}

}  // namespace candor::vision
