#pragma once
// The tensors of tensor_lists.h by their names in Hugging Face checkpoints, and the keys of config.json that say which of
// them are there.

#include <array>
#include <string_view>

#include "model/families/tensor_lists.h"
#include "model/hub/hub_form.h"

namespace candor::model {

inline constexpr std::array kHubStem = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
};
inline constexpr std::array kHubPreNorm = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};
// Of blocks for multi-token prediction, beside what every block has.
inline constexpr std::array kHubPrediction = {
    HubTensor{"blk.*.nextn.eh_proj.weight", "model.layers.*.eh_proj.weight"},
    HubTensor{"blk.*.nextn.enorm.weight", "model.layers.*.enorm.weight"},
    HubTensor{"blk.*.nextn.hnorm.weight", "model.layers.*.hnorm.weight"},
    HubTensor{"blk.*.nextn.shared_head_norm.weight", "model.layers.*.shared_head.norm.weight"},
    HubTensor{"blk.*.nextn.embed_tokens.weight", "model.layers.*.embed_tokens.weight"},
    HubTensor{"blk.*.nextn.shared_head_head.weight", "model.layers.*.shared_head.head.weight"},
};
// Of blocks without norms before their sub-layers.
inline constexpr std::array kHubPostNorm = {
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
};
inline constexpr std::array kHubAttn = {
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
};
inline constexpr std::array kHubQkvBiases = {
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
};
inline constexpr std::array kHubAttnOutBias = {
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias"},
};
inline constexpr std::array kHubGateBias = {
    HubTensor{"blk.*.ffn_gate.bias", "model.layers.*.mlp.gate_proj.bias"},
};
inline constexpr std::array kHubUngatedBiases = {
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.mlp.up_proj.bias"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.mlp.down_proj.bias"},
};
// Which of them are there, as keys of config.json say.
inline constexpr std::string_view kHubQkvBiasNames[] = {"model.layers.*.self_attn.q_proj.bias",
                                                        "model.layers.*.self_attn.k_proj.bias",
                                                        "model.layers.*.self_attn.v_proj.bias"};
inline constexpr std::string_view kHubOutBiasNames[] = {"model.layers.*.self_attn.o_proj.bias"};
inline constexpr std::string_view kHubAttnBiasNames[] = {kHubQkvBiasNames[0], kHubQkvBiasNames[1], kHubQkvBiasNames[2],
                                                         kHubOutBiasNames[0]};
inline constexpr std::string_view kHubMlpBiasNames[] = {
    "model.layers.*.mlp.gate_proj.bias", "model.layers.*.mlp.up_proj.bias", "model.layers.*.mlp.down_proj.bias"};
inline constexpr std::string_view kHubUngatedBiasNames[] = {kHubMlpBiasNames[1], kHubMlpBiasNames[2]};
inline constexpr HubFlag kQkvBiasFlag[] = {{"attention_bias", kHubQkvBiasNames}};
inline constexpr HubFlag kAttnBiasFlag[] = {{"attention_bias", kHubAttnBiasNames}};
inline constexpr HubFlag kBiasFlags[] = {{"attention_bias", kHubAttnBiasNames}, {"mlp_bias", kHubMlpBiasNames}};
inline constexpr HubFlag kUngatedBiasFlags[] = {{"attention_bias", kHubAttnBiasNames},
                                                {"mlp_bias", kHubUngatedBiasNames}};

// For families whose GGUF files rotate interleaved pairs and whose checkpoints rotate halves.
inline constexpr std::array kHubPairedAttn = {
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
};
inline constexpr std::array kHubPairedBiases = {
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
};
inline constexpr std::array kHubQkNorm = {
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight"},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight"},
};
// LayerNorms over heads.
inline constexpr std::array kHubQkLayerNorms = {
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_layernorm.weight"},
    HubTensor{"blk.*.attn_q_norm.bias", "model.layers.*.self_attn.q_layernorm.bias"},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_layernorm.weight"},
    HubTensor{"blk.*.attn_k_norm.bias", "model.layers.*.self_attn.k_layernorm.bias"},
};
inline constexpr std::string_view kHubQkLayerNormNames[] = {
    "model.layers.*.self_attn.q_layernorm.weight", "model.layers.*.self_attn.q_layernorm.bias",
    "model.layers.*.self_attn.k_layernorm.weight", "model.layers.*.self_attn.k_layernorm.bias"};
inline constexpr HubFlag kQkLayerNormFlag[] = {{"qk_layernorm", kHubQkLayerNormNames}};
inline constexpr std::array kHubExperts = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate.#.weight", "model.layers.*.mlp.experts.#.gate_proj.weight"},
    HubTensor{"blk.*.ffn_down.#.weight", "model.layers.*.mlp.experts.#.down_proj.weight"},
    HubTensor{"blk.*.ffn_up.#.weight", "model.layers.*.mlp.experts.#.up_proj.weight"},
};
// In a form that stands behind one without them.
inline constexpr std::array kHubJoinedExperts = {
    HubTensor{"blk.*.ffn_gate_up_exps.weight", "model.layers.*.mlp.experts.gate_up_proj"},
    HubTensor{"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.down_proj"},
};
inline constexpr std::array kHubSharedExpert = {
    HubTensor{"blk.*.ffn_gate_inp_shexp.weight", "model.layers.*.mlp.shared_expert_gate.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_expert.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_expert.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_expert.down_proj.weight"},
};
inline constexpr std::array kHubGatedFfn = {
    HubTensor{"blk.*.ffn_gate.weight", "model.layers.*.mlp.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
};

inline constexpr auto kHubAttnBiases = join(kHubQkvBiases, kHubAttnOutBias);
inline constexpr auto kHubMlpBiases = join(kHubGateBias, kHubUngatedBiases);
inline constexpr auto kHubPairedAttnBiases = join(kHubPairedBiases, kHubAttnOutBias);

}  // namespace candor::model
