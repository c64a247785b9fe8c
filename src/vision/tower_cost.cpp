#include "vision/tower_cost.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "vision/encoder.h"
#include "vision/tile_order.h"

namespace candor::vision {
namespace {

constexpr double kAnyBits = 16;  // bytes are the file's

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
  const std::vector<int32_t> borders = order_of(tile, side).borders;
  double sum = 0;
  for (size_t i = 0; i + 1 < borders.size(); ++i) {
    const double n = borders[i + 1] - borders[i];
    sum += n * n;
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

// Keys and values of a tile's rows, and the own rows, which see them and one another.
model::Work resampler_work(const ResamplerSpec& spec, double n_rows) {
  if (spec.n_rows == 0) return {};
  model::ArchSpec own;
  own.dim = spec.dim;
  own.blocks = {spec.block};
  own.head.is_absent = true;
  const model::ArchCost block = model::cost_of(own, kAnyBits);
  const double kv_elements = 2.0 * spec.dim * spec.block.attn.n_kv_heads * spec.block.attn.head_dim;
  const double n_own = spec.n_rows;
  model::Work work;
  work.matrix_flops = 2 * spec.n_blocks * (n_rows * kv_elements + n_own * block.parameters.dense);
  work.attention_flops = spec.n_blocks * block.attention.front().pair_flops * n_own * (n_rows + n_own);
  return work;
}

}  // namespace

TowerCost cost_of(const VisionSpec& spec, double weight_bytes, const image::Prepared& prepared) {
  const model::ArchCost tower = model::cost_of(spec.tower, kAnyBits);
  const double by_patch = matrix_elements(spec.entry) + tower.parameters.dense;
  double by_row = matrix_elements(spec.projector);
  for (const DeepTap& tap : spec.taps) by_row += matrix_elements(tap.projector);
  const double pair_flops = tower.attention.empty() ? 0 : tower.attention.front().pair_flops;
  TowerCost cost;
  for (const image::Tile& tile : prepared.tiles) {
    const double n_patches = static_cast<double>(tile.rows) * tile.cols;
    const double n_projected = projected_rows(spec, tile);
    const model::Work resampled = resampler_work(spec.resampler, n_projected);
    cost.n_patches += n_patches;
    cost.work.matrix_flops += 2 * (by_patch * (spec.n_lead_rows + n_patches) + by_row * n_projected);
    cost.work.matrix_flops += resampled.matrix_flops;
    cost.work.attention_flops += pair_flops * pairs_of(spec, tile) + resampled.attention_flops;
    cost.work.read_bytes += weight_bytes;
  }
  for (const int32_t n : rows_of_tiles(spec, prepared)) cost.n_rows += n;
  return cost;
}

}  // namespace candor::vision
