#pragma once
// What most families share, so that a family's file says only what is its own: the tensors of a Llama-like decoder
// under GGUF's names, and the hyperparameters that all of them write.

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "backend/op_specs.h"
#include "model/arch_spec.h"
#include "model/families/families.h"
#include "model/hparams.h"
#include "model/hub/hub_config.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

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
inline constexpr std::array kQkNormTensors = {
    TensorName{TensorRole::kQNorm, "blk.*.attn_q_norm.weight"},
    TensorName{TensorRole::kKNorm, "blk.*.attn_k_norm.weight"},
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

// The same tensors by their names in Hugging Face checkpoints.
inline constexpr std::array kHubStem = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
};
inline constexpr std::array kHubPreNorm = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
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
// For families whose GGUF files rotate interleaved pairs and whose checkpoints rotate halves.
inline constexpr std::array kHubPairedAttn = {
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", HubChange::kPairRows},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
};
inline constexpr std::array kHubQkNorm = {
    HubTensor{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight"},
    HubTensor{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight"},
};
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

// Sizes, norms, attention and a SiLU-gated feed-forward in every block; head tied where the file has no
// "output.weight". norm decides which epsilon is read.
using AttentionReader = Result<backend::AttnSpec> (*)(const Hparams& hparams, int32_t dim, int32_t n_layers);
// least_ffn 0: some blocks may have no feed-forward.
Result<ArchSpec> read_decoder(const Hparams& hparams, backend::NormKind norm,
                              AttentionReader read_attn = read_attention, int32_t least_ffn = 1);

// The epsilon of the norms under the name that the family's config.json has for it.
void write_norm_epsilon(const ArchSpec& spec, const char* key, nlohmann::ordered_json& config);

// Experts in every block, each ffn_dim wide. A shared one is refused, unless the family has it.
Result<backend::MoeSpec> read_moe(const Hparams& hparams, bool has_shared = false);

// The same with a shared expert under a sigmoid, in every block of the spec.
Result<void> add_experts_and_shared(const Hparams& hparams, ArchSpec& spec);

// Blocks for multi-token prediction are the last ones, which the file may lack, and not computed.
Result<void> leave_prediction(const Hparams& hparams, ArchSpec& spec);

// [n_layers]: whether a block attends to its window only. From "attention.sliding_window_pattern" (one flag for each
// block, or n: every n-th block sees everything), or the family's own n.
Result<std::vector<bool>> read_window_pattern(const Hparams& hparams, int32_t n_layers, int32_t family_pattern);

}  // namespace candor::model
