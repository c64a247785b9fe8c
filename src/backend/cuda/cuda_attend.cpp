// Attention of CudaOps.

#include <algorithm>
#include <cstdint>

#include "backend/cuda/attend_kernels.h"
#include "backend/cuda/cuda_ops.h"

namespace candor::backend::cuda {

// [H], of the device.
const float* CudaOps::slopes_of(const AttnSpec& spec) {
  if (spec.max_alibi_bias == 0.0f) return nullptr;
  const int32_t n_all = std::max(spec.n_heads, spec.n_all_heads);
  const auto known = std::ranges::find_if(slope_tables_, [&](const SlopeTable& table) {
    return table.n_heads == n_all && table.max_bias == spec.max_alibi_bias;
  });
  SlopeTable& table = known != slope_tables_.end() ? *known : slope_tables_.emplace_back();
  if (table.slopes.empty()) table = {n_all, spec.max_alibi_bias, alibi_slopes(n_all, spec.max_alibi_bias)};
  if (table.memory == nullptr) table.memory = tables_.put(std::span<const float>(table.slopes));
  keep(tables_.status());
  return table.memory == nullptr ? nullptr : table.memory + spec.first_head;
}

// Valid until the next call.
const TileTable& CudaOps::tiles_of(const AttendRowsArgs& shape) {
  for (const TileTable& table : std::span(tile_tables_).first(n_tile_tables_)) {
    if (has_same_plan(table.shape, shape)) return table;
  }
  if (n_tile_tables_ == tile_tables_.size()) tile_tables_.emplace_back();
  TileTable& table = tile_tables_[n_tile_tables_++];
  table.shape = shape;
  plan_attention(device_.info(), shape, batch_.seqs, table.plan);
  table.memory = tables_.put(std::span<const RowTile>(table.plan.tiles));
  keep(tables_.status());
  return table;
}

void CudaOps::compute(const op::Attend& call) {
  if (batch_.n_rows() == 0) return;
  const AttnSpec& spec = *call.spec;
  const AttnTerm& term = call.term;
  const PagePlaces pages = kv_->pages(block_table_, batch_.max_blocks, term.layer);
  const bool is_latent = spec.latent_dim > 0;
  if (term.k.n_cols > 0) {
    store_pages(launches_, {.pages = pages,
                            .k = arena_.data(term.k),
                            .v = is_latent ? nullptr : arena_.data(term.v),
                            .rows = row_places_,
                            .n_rows = batch_.n_rows(),
                            .n_kv_heads = spec.n_kv_heads,
                            .head_dim = spec.head_dim});
  }
  const AttendRowsArgs args{.pages = pages,
                            .q = arena_.data(term.q),
                            .dst = arena_.data(call.dst),
                            .rows = spec.sees_groups ? row_places_ : lone_places_,
                            .slopes = slopes_of(spec),
                            .sinks = spec.has_sinks ? values_of(term.sinks) : nullptr,
                            .biases = spec.bias_reach > 0 ? values_of(term.biases) : nullptr,
                            .n_rows = batch_.n_rows(),
                            .n_heads = spec.n_heads,
                            .n_kv_heads = spec.n_kv_heads,
                            .head_dim = spec.head_dim,
                            .value_dim = spec.value_dim(),
                            .window_tokens = spec.window_tokens,
                            .chunk_tokens = spec.chunk_tokens,
                            .ahead_tokens = spec.is_two_sided ? spec.window_tokens : 0,
                            .bias_reach = spec.bias_reach,
                            .scale = spec.scale,
                            .softcap = spec.softcap,
                            .is_latent = is_latent};
  const TileTable& tiles = tiles_of(args);
  reserve_room(partials_, tiles.plan.partial_bytes);
  reserve_room(rotated_, tiles.plan.rotated_bytes);
  if (!status_) return;
  attend_rows(launches_, args, tiles.plan, {tiles.memory, partials_.data(), rotated_.data()});
}

}  // namespace candor::backend::cuda
