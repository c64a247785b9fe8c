#include "model/role_traits.h"

#include <array>
#include <cstddef>

namespace candor::model {
namespace {

using backend::WeightRole;
using enum TensorRole;
using enum Extent;
using B = BlockWeights;
constexpr auto kVector = WeightRole::kVector;
constexpr auto kMatrix = WeightRole::kLinear;
constexpr auto kGain = &Norm::gain;
constexpr auto kBias = &Norm::bias;
constexpr std::array<RoleTraits, kTensorRoles> kRoles = {{
    {kEmbedding, WeightRole::kEmbedding, kVocab, kDim},
    {kPositions, WeightRole::kEmbedding, kPositionRows, kDim},
    {kEmbedNorm, kVector, kNone, kDim},
    {kEmbedNormBias, kVector, kNone, kDim},
    {kFinalNorm, kVector, kNone, kDim},
    {kFinalNormBias, kVector, kNone, kDim},
    {kHead, kMatrix, kHeadTokens, kDim},
    {kHeadBias, kVector, kNone, kHeadTokens},
    {kAttnNorm, kVector, kNone, kDim, nullptr, &B::attn_norm, kGain},
    {kAttnNormBias, kVector, kNone, kDim, nullptr, &B::attn_norm, kBias},
    {kAttnPostNorm, kVector, kNone, kDim, nullptr, &B::attn_post_norm, kGain},
    {kQ, kMatrix, kQueryRows, kAttnInput, &B::q},
    {kQBias, kVector, kNone, kHeads, &B::q},
    {kK, kMatrix, kKvHeads, kAttnInput, &B::k},
    {kKBias, kVector, kNone, kKvHeads, &B::k},
    {kV, kMatrix, kKvHeads, kAttnInput, &B::v},
    {kVBias, kVector, kNone, kKvHeads, &B::v},
    {kAttnOut, kMatrix, kDim, kOutHeads, &B::attn_out},
    {kAttnOutBias, kVector, kNone, kDim, &B::attn_out},
    {kSinks, kVector, kNone, kHeadCount},
    {kQNorm, kVector, kNone, kQNormed, nullptr, &B::q_norm, kGain},
    {kKNorm, kVector, kNone, kKNormed, nullptr, &B::k_norm, kGain},
    {kFfnNorm, kVector, kNone, kDim, nullptr, &B::ffn_norm, kGain},
    {kFfnNormBias, kVector, kNone, kDim, nullptr, &B::ffn_norm, kBias},
    {kFfnPostNorm, kVector, kNone, kDim, nullptr, &B::ffn_post_norm, kGain},
    {kGate, kMatrix, kFfn, kDim, &B::gate},
    {kGateBias, kVector, kNone, kFfn, &B::gate},
    {kUp, kMatrix, kFfn, kDim, &B::up},
    {kUpBias, kVector, kNone, kFfn, &B::up},
    {kDown, kMatrix, kDim, kFfn, &B::down},
    {kDownBias, kVector, kNone, kDim, &B::down},
    {kRouter, kMatrix, kExperts, kDim, &B::router},
    {kRouterBias, kVector, kNone, kExperts, &B::router},
    {kExpertGate, kMatrix, kFfn, kDim, nullptr, nullptr, nullptr, &ExpertWeights::gate},
    {kExpertGateBias, kVector, kNone, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::gate},
    {kExpertUp, kMatrix, kFfn, kDim, nullptr, nullptr, nullptr, &ExpertWeights::up},
    {kExpertUpBias, kVector, kNone, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::up},
    {kExpertDown, kMatrix, kDim, kFfn, nullptr, nullptr, nullptr, &ExpertWeights::down},
    {kExpertDownBias, kVector, kNone, kDim, nullptr, nullptr, nullptr, &ExpertWeights::down},
    {kQkv, kMatrix, kQkvRows, kDim},
    {kQkvBias, kVector, kNone, kQkvRows},
    {kGateUp, kMatrix, kTwiceFfn, kDim},
    {kDeltaQkv, kMatrix, kChannels, kDim, &B::delta_qkv},
    {kDeltaGate, kMatrix, kValueHeads, kDim, &B::delta_gate},
    {kDeltaAlpha, kMatrix, kValueHeadCount, kDim, &B::delta_alpha},
    {kDeltaBeta, kMatrix, kValueHeadCount, kDim, &B::delta_beta},
    {kDeltaBetaAlpha, kMatrix, kTwiceValueHeads, kDim, &B::delta_beta_alpha},
    {kDeltaTaps, kVector, kChannels, kTaps},
    {kDeltaRate, kVector, kNone, kValueHeadCount},
    {kDeltaBias, kVector, kNone, kGateCount},
    {kDeltaNorm, kVector, kNone, kValueDim, nullptr, &B::delta_norm, kGain},
    {kDeltaOut, kMatrix, kDim, kValueHeads, &B::delta_out},
    {kSharedRouter, kMatrix, kOne, kDim, &B::shared_router},
    {kSharedGate, kMatrix, kSharedFfn, kDim, &B::shared_gate},
    {kSharedUp, kMatrix, kSharedFfn, kDim, &B::shared_up},
    {kSharedDown, kMatrix, kDim, kSharedFfn, &B::shared_down},
    {kChoiceBias, kVector, kNone, kExperts},
    {kQueryDown, kMatrix, kQueryRank, kDim, &B::query_down},
    {kQueryNorm, kVector, kNone, kQueryRank, nullptr, &B::query_norm, kGain},
    {kQueryUp, kMatrix, kQueryRows, kQueryRank, &B::q},
    {kLatent, kMatrix, kLatentRows, kDim, &B::latent},
    {kLatentNorm, kVector, kNone, kLatentWidth, nullptr, &B::latent_norm, kGain},
    {kLatentKey, kMatrix, kLatentWidth, kLatentKeyDim, &B::latent_key},
    {kLatentValue, kMatrix, kLatentValueDim, kLatentWidth, &B::latent_value},
    {kConvIn, kMatrix, kConvRows, kDim},
    {kConvB, kMatrix, kDim, kDim, &B::conv_b},
    {kConvC, kMatrix, kDim, kDim, &B::conv_c},
    {kConvX, kMatrix, kDim, kDim, &B::conv_x},
    {kConvTaps, kVector, kDim, kConvTapCount},
    {kConvOut, kMatrix, kDim, kDim, &B::conv_out},
    {kSsmIn, kMatrix, kSsmRows, kDim},
    {kSsmGate, kMatrix, kSsmWidth, kDim, &B::ssm_gate},
    {kSsmChannels, kMatrix, kSsmChannelCount, kDim, &B::ssm_channels},
    {kSsmStep, kMatrix, kSsmHeadCount, kDim, &B::ssm_step},
    {kSsmTaps, kVector, kSsmChannelCount, kSsmTapCount},
    {kSsmTapsBias, kVector, kNone, kSsmChannelCount},
    {kSsmRate, kVector, kSsmHeadCount, kOne},
    {kSsmSkip, kVector, kSsmHeadCount, kOne},
    {kSsmStepBias, kVector, kNone, kSsmHeadCount},
    {kSsmNorm, kVector, kSsmGroupCount, kSsmGroupWidth, nullptr, &B::ssm_norm, kGain},
    {kSsmOut, kMatrix, kDim, kSsmWidth, &B::ssm_out},
    {kDeltaQ, kMatrix, kDeltaKeys, kDim, &B::delta_q},
    {kDeltaK, kMatrix, kDeltaKeys, kDim, &B::delta_k},
    {kDeltaV, kMatrix, kValueHeads, kDim, &B::delta_v},
    {kDeltaQTaps, kVector, kDeltaKeys, kTaps},
    {kDeltaKTaps, kVector, kDeltaKeys, kTaps},
    {kDeltaVTaps, kVector, kValueHeads, kTaps},
    {kDeltaAlphaDown, kMatrix, kDeltaKeyDim, kDim, &B::delta_alpha_down},
    {kDeltaAlphaUp, kMatrix, kGateCount, kDeltaKeyDim, &B::delta_alpha},
    {kDeltaGateDown, kMatrix, kValueDim, kDim, &B::delta_gate_down},
    {kDeltaGateUp, kMatrix, kValueHeads, kValueDim, &B::delta_gate},
    {kLayerTable, WeightRole::kEmbedding, kVocab, kAllLayerDims},
    {kLayerProjection, kMatrix, kAllLayerDims, kDim},
    {kLayerNorm, kVector, kNone, kLayerDim},
    {kLayerGate, kMatrix, kLayerDim, kDim, &B::layer_gate},
    {kLayerOut, kMatrix, kDim, kLayerDim, &B::layer_out},
    {kLayerPostNorm, kVector, kNone, kDim, nullptr, &B::layer_post_norm, kGain},
    {kOutScale, kVector, kNone, kOne},
    {kSharedPostNorm, kVector, kNone, kDim, nullptr, &B::shared_post_norm, kGain},
    {kExpertNorm, kVector, kNone, kDim, nullptr, &B::expert_norm, kGain},
    {kExpertPostNorm, kVector, kNone, kDim, nullptr, &B::expert_post_norm, kGain},
    {kRouterGain, kVector, kNone, kDim, nullptr, &B::router_norm, kGain},
    {kExpertScales, kVector, kNone, kExperts},
    {kQNormBias, kVector, kNone, kQNormed, nullptr, &B::q_norm, kBias},
    {kKNormBias, kVector, kNone, kKNormed, nullptr, &B::k_norm, kBias},
    {kAttnGate, kMatrix, kHeads, kDim, &B::attn_gate},
    {kExpertGateUp, kMatrix, kTwiceFfn, kDim, nullptr, nullptr, nullptr, &ExpertWeights::gate},
    {kTokenTypes, WeightRole::kEmbedding, kTypeCount, kDim},
    {kAttnPostNormBias, kVector, kNone, kDim, nullptr, &B::attn_post_norm, kBias},
    {kFfnPostNormBias, kVector, kNone, kDim, nullptr, &B::ffn_post_norm, kBias},
    {kDistanceBias, kVector, kNone, kDistanceCount},
    {kWordDense, kMatrix, kDim, kDim},
    {kWordDenseBias, kVector, kNone, kDim},
    {kWordNorm, kVector, kNone, kDim},
    {kWordNormBias, kVector, kNone, kDim},
    {kMixBias, kVector, kNone, kDim},
    {kJoin, kMatrix, kDim, kJoinInput},
    {kJoinTokenNorm, kVector, kNone, kDim},
    {kJoinVectorNorm, kVector, kNone, kDim},
    {kVectorsNorm, kVector, kNone, kJoinInput},
}};

constexpr bool in_order() {
  for (size_t i = 0; i < kRoles.size(); ++i) {
    if (static_cast<size_t>(kRoles[i].role) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

namespace {

// Of what attention reads and gives, of latent attention, of what tokens have for single blocks, and of heads.
int64_t rare_extent(Extent extent, const ArchSpec& spec, const BlockSpec& block) {
  switch (extent) {
    case kAttnInput:
      return block.attends_beside_token ? int64_t{2} * spec.dim : spec.dim;
    case kJoinInput:
      return spec.embed.vector_dim > 0 ? spec.embed.vector_dim : int64_t{2} * spec.dim;
    case kLayerDim:
      return spec.embed.layer_dim;
    case kTypeCount:
      return spec.embed.n_types;
    case kAllLayerDims:
      return spec.embed.layer_dim * static_cast<int64_t>(spec.blocks.size());
    case kQueryRank:
      return block.latent.query_rank;
    case kLatentWidth:
      return block.attn.latent_dim;
    case kLatentRows:
      return block.attn.head_dim;
    case kLatentKeyDim:
      return block.latent.head_dim;
    case kLatentValueDim:
      return block.latent.value_dim;
    case kOutHeads:
      return int64_t{block.attn.n_heads} * (block.has_latent() ? block.latent.value_dim : block.attn.head_dim);
    default:
      return 0;
  }
}

// Of gated convolutions and state spaces, and of all else that is left.
int64_t state_extent(Extent extent, const ArchSpec& spec, const BlockSpec& block) {
  switch (extent) {
    case kGateCount:
      return block.delta.n_gates();
    case kDeltaKeys:
      return block.delta.k_width();
    case kDeltaKeyDim:
      return block.delta.k_dim;
    case kConvRows:
      return int64_t{3} * block.gated_conv.n_channels;
    case kConvTapCount:
      return block.gated_conv.n_taps;
    case kSsmRows:
      return int64_t{block.ssm.width()} + block.ssm.n_channels() + block.ssm.n_heads;
    case kSsmWidth:
      return block.ssm.width();
    case kSsmChannelCount:
      return block.ssm.n_channels();
    case kSsmTapCount:
      return block.ssm.n_taps;
    case kSsmHeadCount:
      return block.ssm.n_heads;
    case kSsmGroupCount:
      return block.ssm.n_groups;
    case kSsmGroupWidth:
      return block.ssm.width() / block.ssm.n_groups;
    default:
      return rare_extent(extent, spec, block);
  }
}

}  // namespace

int64_t extent_of(Extent extent, const ArchSpec& spec, int32_t layer) {
  const BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
  const int64_t head_dim = block.attn.head_dim;
  const int64_t heads = block.attn.n_heads * head_dim;
  const int64_t kv_heads = block.attn.n_kv_heads * head_dim;
  switch (extent) {
    case kNone:
    case kOne:
      return 1;
    case kDim:
      return spec.dim;
    case kVocab:
      return spec.vocab;
    case kHeadTokens:
      return head_tokens(spec);
    case kPositionRows:
      return spec.max_positions;
    case kDistanceCount:
      return int64_t{block.attn.n_heads} * (2 * block.attn.bias_reach + 1);
    case kHeadCount:
      return block.attn.n_heads;
    case kHeads:
      return heads;
    case kKvHeads:
      return kv_heads;
    case kQkvRows:
      return heads + 2 * kv_heads;
    case kQNormed:
      return block.qk_norm == QkNorm::kHeads ? head_dim : heads;
    case kKNormed:
      return block.qk_norm == QkNorm::kHeads ? head_dim : kv_heads;
    case kFfn:
      return block.ffn.ffn_dim;
    case kTwiceFfn:
      return int64_t{2} * block.ffn.ffn_dim;
    case kExperts:
      return block.ffn.moe.n_experts;
    case kQueryRows:
      if (block.has_latent()) return int64_t{block.attn.n_heads} * (block.latent.head_dim + block.rotated_dim());
      return block.joins_gate() ? 2 * heads : heads;
    case kChannels:
      return block.delta.n_channels();
    case kTaps:
      return block.delta.n_taps;
    case kValueHeadCount:
      return block.delta.n_v_heads;
    case kTwiceValueHeads:
      return int64_t{2} * block.delta.n_v_heads;
    case kValueHeads:
      return block.delta.v_width();
    case kValueDim:
      return block.delta.v_dim;
    case kSharedFfn:
      return block.ffn.shared_dim;
    default:
      return state_extent(extent, spec, block);
  }
}

std::string_view key_of(Extent extent, const BlockSpec& block) {
  switch (extent) {
    case kConvTapCount:
      return "shortconv.l_cache";
    case kTaps:
    case kSsmTapCount:
      return "ssm.conv_kernel";
    case kChannels:
    case kSsmChannelCount:
    case kSsmRows:
      return "ssm.state_size";
    case kValueHeads:
    case kSsmWidth:
    case kSsmGroupWidth:
      return "ssm.inner_size";
    case kValueHeadCount:
    case kTwiceValueHeads:
    case kSsmHeadCount:
      return "ssm.time_step_rank";
    case kSsmGroupCount:
      return "ssm.group_count";
    case kDeltaKeys:
    case kDeltaKeyDim:
      return block.delta.has_channel_gates ? "kda.head_dim" : "ssm.state_size";
    default:
      return "";
  }
}

const RoleTraits& traits_of(TensorRole role) {
  return kRoles[static_cast<size_t>(role)];
}

bool is_expert(TensorRole role) {
  return traits_of(role).expert != nullptr;
}

bool is_by_head(TensorRole role) {
  return role == kLatentKey || role == kLatentValue;
}

Shape expected_shape(const ArchSpec& spec, TensorRole role, int32_t layer) {
  const RoleTraits& traits = traits_of(role);
  const int64_t cols = extent_of(traits.cols, spec, layer);
  if (traits.rows == kNone) return {1, {cols}};
  const int64_t rows = extent_of(traits.rows, spec, layer);
  if (is_by_head(role)) return {3, {extent_of(kHeadCount, spec, layer), rows, cols}};
  return {2, {rows, cols}};
}

Shape stacked_shape(const ArchSpec& spec, TensorRole role, int32_t layer) {
  const Shape one = expected_shape(spec, role, layer);
  const int64_t n_experts = extent_of(kExperts, spec, layer);
  return one.n_dims == 1 ? Shape{2, {n_experts, one[0]}} : Shape{3, {n_experts, one[0], one[1]}};
}

// Of tensors that few families have.
bool is_absent(TensorRole role, const BlockSpec& block) {
  if (role == kK || role == kKBias || role == kKNorm || role == kKNormBias) return block.shares_kv();
  if (role == kV || role == kVBias) return block.shares_kv() || block.values_are_keys;
  if (role == kDistanceBias) return block.attn.bias_reach == 0;
  if (role == kMixBias) return !block.ffn.is_moe();
  if (role == kExpertScales) return !block.ffn.moe.has_expert_scales;
  if (role >= kSharedPostNorm && role <= kRouterGain) return !block.ffn.has_parted_norms;
  if (role == kOutScale) return !block.has_out_scale;
  if (role == kAttnGate) return !block.is_gate_apart;
  if (role == kJoinVectorNorm) return block.attends_beside_token && !block.is_attn_bare;
  return role >= kLayerTable && role <= kLayerPostNorm && block.layer_dim == 0;
}

bool is_for(TensorRole role, const BlockSpec& block) {
  if (is_absent(role, block)) return false;
  const bool is_ffn_norm = role == kFfnNorm || role == kFfnNormBias;
  const bool is_normed_before = !reads_bare_stream(block.wiring);
  if (is_ffn_norm) return block.has_ffn() && is_normed_before && block.wiring != Wiring::kParallel;
  if (role == kAttnNorm || role == kAttnNormBias) {
    return block.has_mixer() && is_normed_before && !block.is_attn_bare;
  }
  const bool is_post_norm =
      role == kAttnPostNorm || role == kFfnPostNorm || role == kAttnPostNormBias || role == kFfnPostNormBias;
  if (is_post_norm) return !is_normed_before || block.wiring == Wiring::kSandwich;
  const bool is_qk_norm = role == kQNorm || role == kKNorm || role == kQNormBias || role == kKNormBias;
  if (is_qk_norm) return block.qk_norm != QkNorm::kNone && block.has_attention;
  if (role == kChoiceBias) return block.ffn.moe.has_choice_bias;
  if (role >= kQueryDown && role <= kQueryUp) return block.latent.query_rank > 0;
  if (role >= kLatent && role <= kLatentValue) return block.has_latent();
  if (role == kQ && block.latent.query_rank > 0) return false;
  if (role == kSharedRouter && !block.ffn.is_shared_gated) return false;
  const bool is_attention = role >= kQ && role <= kKNorm;
  if (is_attention || role == kQkv || role == kQkvBias) return block.has_attention;
  if (role >= kDeltaQkv && role <= kDeltaOut) return block.has_delta();
  if (role >= kDeltaQ && role <= kDeltaVTaps) return block.has_delta() && block.has_delta_parts;
  if (role >= kDeltaAlphaDown && role <= kDeltaGateUp) return block.has_delta() && block.delta.has_channel_gates;
  if (role >= kConvIn && role <= kConvOut) return block.has_gated_conv();
  if (role == kSsmNorm) return block.has_ssm() && block.has_ssm_norm;
  if (role >= kSsmIn && role <= kSsmOut) return block.has_ssm();
  if (role >= kSharedRouter && role <= kSharedDown) return block.ffn.is_moe() && block.ffn.shared_dim > 0;
  if (role == kGate || role == kUp || role == kDown || role == kGateUp) return block.has_ffn() && !block.ffn.is_moe();
  if (role == kRouter || role == kRouterBias || is_expert(role)) return block.ffn.is_moe();
  return true;
}

}  // namespace candor::model
