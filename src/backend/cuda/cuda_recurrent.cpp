// Layers that keep a state, of CudaOps.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/cuda_ops.h"
#include "backend/cuda/recurrent_kernels.h"
#include "backend/state_specs.h"
#include "base/ids.h"

namespace candor::backend::cuda {

void CudaOps::put_states() {
  std::vector<StateSlice>& slices = host_.slices;
  std::vector<RowSave>& saves = host_.saves;
  slices.clear();
  saves.clear();
  for (const SeqSlice& seq : batch_.seqs) {
    if (seq.n_rows == 0) continue;
    const std::span<const StateSave> own = batch_.saves_of(seq);
    slices.push_back({.first_row = seq.first_row,
                      .n_rows = seq.n_rows,
                      .slot = seq.state == kNoState ? -1 : static_cast<int32_t>(seq.state),
                      .first_save = static_cast<int32_t>(saves.size()),
                      .n_saves = static_cast<int32_t>(own.size())});
    for (const StateSave& save : own) saves.push_back({save.row, static_cast<int32_t>(save.slot)});
  }
  states_ = {.slices = tables_.put(std::span<const StateSlice>(slices)),
             .saves = tables_.put(std::span<const RowSave>(saves)),
             .n_slices = static_cast<int32_t>(slices.size())};
}

StatePlaces CudaOps::states_of(int32_t layer) const {
  StatePlaces places = states_;
  places.base = kv_->state(0, layer);
  places.slot_floats = kv_->layout().state.slot_floats();
  return places;
}

void CudaOps::compute(const op::CausalConv& call) {
  if (batch_.n_rows() == 0) return;
  const ConvTerm& term = call.term;
  run_conv(launches_, {.states = states_of(term.layer),
                       .x = arena_.data(term.x),
                       .taps = values_of(term.taps),
                       .bias = values_of(term.bias),
                       .n_channels = call.spec.n_channels,
                       .first = term.first_channel,
                       .n = static_cast<int32_t>(term.taps->n_rows() * term.taps->n_cols() / call.spec.n_taps),
                       .n_taps = call.spec.n_taps,
                       .has_silu = call.spec.has_silu});
}

void CudaOps::compute(const op::DeltaRule& call) {
  if (batch_.n_rows() == 0) return;
  const DeltaTerm& term = call.term;
  const DeltaSpec& spec = call.spec;
  run_delta_rule(launches_, {.states = states_of(term.layer),
                             .dst = arena_.data(call.dst),
                             .qkv = arena_.data(term.qkv),
                             .alpha = arena_.data(term.alpha),
                             .beta = arena_.data(term.beta),
                             .rate = values_of(term.rate),
                             .bias = values_of(term.bias),
                             .heads_at = spec.conv_floats(),
                             .n_k_heads = spec.n_k_heads,
                             .n_v_heads = spec.n_v_heads,
                             .k_dim = spec.k_dim,
                             .v_dim = spec.v_dim,
                             .q_scale = 1.0f / std::sqrt(static_cast<float>(spec.k_dim)),
                             .share_scale = spec.share_scale,
                             .has_tiled_heads = spec.key_heads == KeyHeads::kTiled,
                             .has_channel_gates = spec.has_channel_gates});
}

void CudaOps::compute(const op::SsmScan& call) {
  if (batch_.n_rows() == 0) return;
  const SsmTerm& term = call.term;
  const SsmSpec& spec = call.spec;
  run_ssm_scan(launches_, {.states = states_of(term.layer),
                           .dst = arena_.data(call.dst),
                           .xbc = arena_.data(term.xbc),
                           .dt = arena_.data(term.dt),
                           .rate = values_of(term.rate),
                           .bias = values_of(term.bias),
                           .skip = values_of(term.skip),
                           .heads_at = spec.conv_floats(),
                           .n_heads = spec.n_heads,
                           .n_groups = spec.n_groups,
                           .state_dim = spec.state_dim,
                           .head_dim = spec.head_dim,
                           .least_step = spec.least_step,
                           .most_step = spec.most_step});
}

}  // namespace candor::backend::cuda
