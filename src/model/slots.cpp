#include "model/slots.h"

#include <algorithm>

#include "backend/state_specs.h"
#include "model/model.h"

namespace candor::model {
namespace {

using backend::Activation;

void add_latent_cols(const BlockSpec& block, std::array<int32_t, Slot::kSlots>& cols) {
  const backend::AttnSpec& attn = block.attn;
  const int32_t rotated = block.rotated_dim();
  cols[Slot::kHeads] = attn.n_heads * block.latent.value_dim;
  cols[Slot::kV] = 0;
  cols[Slot::kQueryLow] = block.latent.query_rank;
  cols[Slot::kQueries] = attn.n_heads * (block.latent.head_dim + rotated);
  cols[Slot::kPlainQueries] = attn.n_heads * block.latent.head_dim;
  cols[Slot::kRotatedQueries] = attn.n_heads * rotated;
  cols[Slot::kWide] = attn.n_heads * attn.latent_dim;
  cols[Slot::kLatentAndKey] = attn.head_dim;
  cols[Slot::kLatent] = attn.latent_dim;
  cols[Slot::kRotatedKey] = rotated;
}

void add_state_cols(const BlockSpec& block, std::array<int32_t, Slot::kSlots>& cols) {
  if (block.has_gated_conv()) {
    cols[Slot::kStateChannels] = cols[Slot::kStateBefore] = cols[Slot::kStateGate] = block.gated_conv.n_channels;
  }
  if (!block.has_ssm()) return;
  cols[Slot::kStateChannels] = block.ssm.n_channels();
  cols[Slot::kStateGate] = cols[Slot::kStateOut] = block.ssm.width();
  cols[Slot::kStateStep] = block.ssm.n_heads;
}

void add_delta_cols(const BlockSpec& block, std::array<int32_t, Slot::kSlots>& cols) {
  const backend::DeltaSpec& delta = block.delta;
  cols[Slot::kHeads] = cols[Slot::kHeadGate] = delta.v_width();
  cols[Slot::kJoined] = delta.n_channels();
  cols[Slot::kAlpha] = delta.n_gates();
  cols[Slot::kBeta] = delta.n_v_heads;
  cols[Slot::kBetaAlpha] = 2 * delta.n_v_heads;
  if (block.has_delta_parts) {
    cols[Slot::kQ] = cols[Slot::kK] = delta.k_width();
    cols[Slot::kV] = delta.v_width();
    cols[Slot::kStateBefore] = 2 * delta.k_width();
  }
  if (!delta.has_channel_gates) return;
  cols[Slot::kStateStep] = delta.k_dim;
  cols[Slot::kStateGate] = delta.v_dim;
}

void add_attention_cols(const BlockSpec& block, std::array<int32_t, Slot::kSlots>& cols) {
  const int32_t heads = block.attn.n_heads * block.attn.head_dim;
  const int32_t kv_heads = block.attn.n_kv_heads * block.attn.head_dim;
  cols[Slot::kQ] = cols[Slot::kHeads] = heads;
  cols[Slot::kK] = cols[Slot::kV] = block.shares_kv() ? 0 : kv_heads;
  cols[Slot::kJoined] = block.joins_gate() ? 2 * heads : 0;
  cols[Slot::kHeadGate] = block.has_head_gate ? heads : 0;
  if (block.has_latent()) add_latent_cols(block, cols);
}

// Each row stands once for each of its experts.
void add_expert_cols(const FfnSpec& ffn, int32_t dim, std::array<int32_t, Slot::kSlots>& cols) {
  cols[Slot::kGate] = cols[Slot::kUp] = ffn.moe.n_used * ffn.ffn_dim;
  cols[Slot::kExpertOut] = ffn.moe.n_used * dim;
  cols[Slot::kMixed] = dim;
}

// Columns of `n_pieces` that are encoded one by one, each with padding of its own.
int32_t encoded_pieces(int32_t n_pieces, int32_t width) {
  constexpr int32_t kPadding = 64;
  return n_pieces * (((width + kPadding - 1) / kPadding + 1) * kPadding);
}

// Of the inputs of linear_heads() and of experts.
int32_t encoded_cols(const BlockSpec& block, int32_t dim) {
  const int32_t heads = block.has_latent()
                            ? encoded_pieces(block.attn.n_heads, std::max(block.latent.head_dim, block.attn.latent_dim))
                            : 0;
  return std::max(heads, encoded_pieces(block.ffn.moe.n_used, std::max(dim, block.ffn.ffn_dim)));
}

}  // namespace

std::array<int32_t, Slot::kSlots> slot_cols(const ArchSpec& spec, const BlockSpec& block) {
  std::array<int32_t, Slot::kSlots> cols{};
  cols[Slot::kX] = cols[Slot::kH] = cols[Slot::kLast] = spec.dim;
  cols[Slot::kLogits] = spec.head.is_absent ? 0 : head_tokens(spec);
  cols[Slot::kJoinedVectors] = spec.embed.joins_vectors || block.attends_beside_token ? 2 * spec.dim : 0;
  cols[Slot::kToken] = block.attends_beside_token ? spec.dim : 0;
  cols[Slot::kVectors] = cols[Slot::kVectorsBefore] = spec.embed.vector_dim;
  cols[Slot::kGiven] = spec.head.gives_stream ? spec.dim : 0;
  cols[Slot::kGuess] = spec.head.is_of_masked ? spec.dim : 0;
  cols[Slot::kLayerInputs] = cols[Slot::kLayerProjected] =
      spec.embed.layer_dim * static_cast<int32_t>(spec.blocks.size());
  cols[Slot::kLayerInput] = cols[Slot::kLayerGate] = block.layer_dim;
  cols[Slot::kBounded] = block.bounds.exist() ? spec.dim : 0;
  cols[Slot::kGate] = cols[Slot::kUp] = block.ffn.ffn_dim;
  if (block.ffn.is_moe()) add_expert_cols(block.ffn, spec.dim, cols);
  cols[Slot::kScores] = block.ffn.moe.n_experts;
  if (is_parallel(block.wiring) || (block.has_attention && block.is_recurrent())) cols[Slot::kBranch] = spec.dim;
  cols[Slot::kSharedGate] = cols[Slot::kSharedUp] = block.ffn.shared_dim;
  cols[Slot::kSharedScore] = block.ffn.shared_dim > 0 && block.ffn.is_shared_gated ? 1 : 0;
  if (block.has_attention) add_attention_cols(block, cols);
  if (block.has_delta()) add_delta_cols(block, cols);
  add_state_cols(block, cols);
  return cols;
}

BlockActivations activations(const ArchSpec& spec, const BlockSpec& block, int32_t n_rows) {
  const std::array<int32_t, Slot::kSlots> cols = slot_cols(spec, block);
  const auto at = [&](Slot::Index slot) { return Activation{slot, n_rows, cols[static_cast<size_t>(slot)]}; };
  return {at(Slot::kX),
          at(Slot::kH),
          at(Slot::kQ),
          at(Slot::kK),
          at(Slot::kV),
          at(Slot::kHeads),
          at(Slot::kGate),
          at(Slot::kUp),
          at(Slot::kScores),
          at(Slot::kExpertOut),
          at(Slot::kMixed),
          at(Slot::kBranch),
          at(Slot::kJoined),
          at(Slot::kHeadGate),
          at(Slot::kAlpha),
          at(Slot::kBeta),
          at(Slot::kBetaAlpha),
          at(Slot::kSharedGate),
          at(Slot::kSharedUp),
          at(Slot::kSharedScore),
          {at(Slot::kQueryLow), at(Slot::kQueries), at(Slot::kPlainQueries), at(Slot::kRotatedQueries), at(Slot::kWide),
           at(Slot::kLatentAndKey), at(Slot::kLatent), at(Slot::kRotatedKey)},
          {at(Slot::kStateChannels), at(Slot::kStateBefore), at(Slot::kStateGate), at(Slot::kStateStep),
           at(Slot::kStateOut)},
          at(Slot::kLayerInput),
          at(Slot::kLayerGate),
          at(Slot::kBounded),
          at(Slot::kToken),
          at(Slot::kJoinedVectors)};
}

backend::ArenaLayout arena_layout(const ArchSpec& spec, int32_t max_rows, int32_t max_out_rows, int32_t max_positions) {
  backend::ArenaLayout layout;
  layout.slot_cols.assign(Slot::kSlots, 0);
  for (const BlockSpec& block : spec.blocks) {
    const std::array<int32_t, Slot::kSlots> cols = slot_cols(spec, block);
    for (size_t slot = 0; slot < cols.size(); ++slot) {
      layout.slot_cols[slot] = std::max(layout.slot_cols[slot], cols[slot]);
    }
    layout.max_input_cols =
        std::max({layout.max_input_cols, spec.dim, cols[Slot::kHeads], cols[Slot::kGate], cols[Slot::kSharedGate],
                  cols[Slot::kQueryLow], cols[Slot::kStateGate], cols[Slot::kStateStep], cols[Slot::kJoinedVectors],
                  cols[Slot::kVectors], block.layer_dim, encoded_cols(block, spec.dim)});
  }
  layout.slot_is_output.assign(Slot::kSlots, false);
  layout.slot_is_output[Slot::kLast] = true;
  layout.slot_is_output[Slot::kGiven] = true;
  layout.slot_is_output[Slot::kGuess] = true;
  layout.slot_is_output[Slot::kLogits] = true;
  layout.max_rows = max_rows;
  layout.max_out_rows = max_out_rows;
  layout.max_positions = max_positions == 0 ? spec.max_positions : max_positions;
  return layout;
}

}  // namespace candor::model
