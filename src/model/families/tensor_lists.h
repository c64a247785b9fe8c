#pragma once
// The tensors of a Llama-like decoder under GGUF's names, in lists that families join.

#include <array>
#include <cstddef>
#include <initializer_list>

#include "model/tensor_roles.h"

namespace candor::model {

// The lists one after another.
template <class Row, size_t... n>
constexpr auto join(const std::array<Row, n>&... lists) {
  std::array<Row, (n + ...)> all{};
  size_t at = 0;
  const auto append = [&](const auto& list) {
    for (const Row& row : list) all[at++] = row;
  };
  (append(lists), ...);
  return all;
}

inline constexpr Presence kOptional = Presence::kOptional;

inline constexpr std::array kStemTensors = {
    TensorName{TensorRole::kEmbedding, "token_embd.weight"},
    TensorName{TensorRole::kFinalNorm, "output_norm.weight"},
    TensorName{TensorRole::kHead, "output.weight", kOptional},
};
inline constexpr std::array kPreNormTensors = {
    TensorName{TensorRole::kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{TensorRole::kFfnNorm, "blk.*.ffn_norm.weight"},
};
inline constexpr std::array kPostNormTensors = {
    TensorName{TensorRole::kAttnPostNorm, "blk.*.post_attention_norm.weight"},
    TensorName{TensorRole::kFfnPostNorm, "blk.*.post_ffw_norm.weight"},
};
inline constexpr std::array kAttnTensors = {
    TensorName{TensorRole::kQ, "blk.*.attn_q.weight"},
    TensorName{TensorRole::kK, "blk.*.attn_k.weight"},
    TensorName{TensorRole::kV, "blk.*.attn_v.weight"},
    TensorName{TensorRole::kAttnOut, "blk.*.attn_output.weight"},
};
inline constexpr std::array kQkvTensors = {
    TensorName{TensorRole::kQ, "blk.*.attn_q.weight"},
    TensorName{TensorRole::kK, "blk.*.attn_k.weight"},
    TensorName{TensorRole::kV, "blk.*.attn_v.weight"},
};
inline constexpr std::array kQkvBiases = {
    TensorName{TensorRole::kQBias, "blk.*.attn_q.bias", kOptional},
    TensorName{TensorRole::kKBias, "blk.*.attn_k.bias", kOptional},
    TensorName{TensorRole::kVBias, "blk.*.attn_v.bias", kOptional},
};
inline constexpr std::array kAttnOutBias = {TensorName{TensorRole::kAttnOutBias, "blk.*.attn_output.bias", kOptional}};
inline constexpr std::array kUngatedBiases = {
    TensorName{TensorRole::kUpBias, "blk.*.ffn_up.bias", kOptional},
    TensorName{TensorRole::kDownBias, "blk.*.ffn_down.bias", kOptional},
};
inline constexpr std::array kGateBias = {TensorName{TensorRole::kGateBias, "blk.*.ffn_gate.bias", kOptional}};
inline constexpr std::array kQkNormTensors = {
    TensorName{TensorRole::kQNorm, "blk.*.attn_q_norm.weight"},
    TensorName{TensorRole::kKNorm, "blk.*.attn_k_norm.weight"},
};
inline constexpr std::array kQkNormBiases = {
    TensorName{TensorRole::kQNormBias, "blk.*.attn_q_norm.bias"},
    TensorName{TensorRole::kKNormBias, "blk.*.attn_k_norm.bias"},
};
inline constexpr std::array kGatedFfnTensors = {
    TensorName{TensorRole::kGate, "blk.*.ffn_gate.weight"},
    TensorName{TensorRole::kUp, "blk.*.ffn_up.weight"},
    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
};
inline constexpr std::array kMoeTensors = {
    TensorName{TensorRole::kRouter, "blk.*.ffn_gate_inp.weight"},
    TensorName{TensorRole::kExpertGate, "blk.*.ffn_gate_exps.weight"},
    TensorName{TensorRole::kExpertUp, "blk.*.ffn_up_exps.weight"},
    TensorName{TensorRole::kExpertDown, "blk.*.ffn_down_exps.weight"},
};
// Gate and up of all experts in one; before kMoeTensors.
inline constexpr std::array kJoinedMoeTensors = {
    TensorName{TensorRole::kExpertGateUp, "blk.*.ffn_gate_up_exps.weight", kOptional},
};
// One that every row goes to, under a sigmoid of the row.
inline constexpr std::array kSharedExpertTensors = {
    TensorName{TensorRole::kSharedRouter, "blk.*.ffn_gate_inp_shexp.weight"},
    TensorName{TensorRole::kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{TensorRole::kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{TensorRole::kSharedDown, "blk.*.ffn_down_shexp.weight"},
};
// Blocks of one LayerNorm for attention and feed-forward, which has no gate; the head with a bias.
inline constexpr std::array kOneNormTensors = {
    TensorName{TensorRole::kFinalNormBias, "output_norm.bias"},
    TensorName{TensorRole::kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{TensorRole::kAttnNormBias, "blk.*.attn_norm.bias"},
};
inline constexpr std::array kHeadBiasTensors = {TensorName{TensorRole::kHeadBias, "output.bias"}};
inline constexpr std::array kUngatedFfnTensors = {
    TensorName{TensorRole::kUp, "blk.*.ffn_up.weight"},
    TensorName{TensorRole::kUpBias, "blk.*.ffn_up.bias"},
    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
    TensorName{TensorRole::kDownBias, "blk.*.ffn_down.bias"},
};
// Blocks of LayerNorms with biases and an ungated feed-forward.
inline constexpr std::array kLayerNormTensors = {
    TensorName{TensorRole::kFinalNormBias, "output_norm.bias"},
    TensorName{TensorRole::kAttnNormBias, "blk.*.attn_norm.bias"},
    TensorName{TensorRole::kAttnOut, "blk.*.attn_output.weight"},
    TensorName{TensorRole::kAttnOutBias, "blk.*.attn_output.bias"},
    TensorName{TensorRole::kFfnNormBias, "blk.*.ffn_norm.bias"},
    TensorName{TensorRole::kUp, "blk.*.ffn_up.weight"},
    TensorName{TensorRole::kUpBias, "blk.*.ffn_up.bias"},
    TensorName{TensorRole::kDown, "blk.*.ffn_down.weight"},
    TensorName{TensorRole::kDownBias, "blk.*.ffn_down.bias"},
};

// The rows with these biases, which a file may lack.
template <size_t n>
constexpr std::array<TensorName, n> with_optional(std::array<TensorName, n> rows,
                                                  std::initializer_list<TensorRole> biases) {
  for (TensorName& row : rows) {
    for (const TensorRole bias : biases) row.presence = row.role == bias ? kOptional : row.presence;
  }
  return rows;
}

inline constexpr auto kAttnBiases = join(kQkvBiases, kAttnOutBias);
inline constexpr auto kAllBiases = join(kAttnBiases, kGateBias, kUngatedBiases);

}  // namespace candor::model
