#pragma once
// Latent attention (MLA), which DeepSeek and its successors have: its tensors, and its sizes from metadata.

#include <array>
#include <cstdint>

#include "backend/op_specs.h"
#include "base/error.h"
#include "model/arch_spec.h"
#include "model/hparams.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

inline constexpr std::array kLatentAttnTensors = {
    TensorName{TensorRole::kQ, "blk.*.attn_q.weight"},
    TensorName{TensorRole::kQueryDown, "blk.*.attn_q_a.weight"},
    TensorName{TensorRole::kQueryNorm, "blk.*.attn_q_a_norm.weight"},
    TensorName{TensorRole::kQueryUp, "blk.*.attn_q_b.weight"},
    TensorName{TensorRole::kLatent, "blk.*.attn_kv_a_mqa.weight"},
    TensorName{TensorRole::kLatentNorm, "blk.*.attn_kv_a_norm.weight"},
    TensorName{TensorRole::kLatentKey, "blk.*.attn_k_b.weight"},
    TensorName{TensorRole::kLatentValue, "blk.*.attn_v_b.weight"},
    TensorName{TensorRole::kAttnOut, "blk.*.attn_output.weight"},
};
inline constexpr std::array kHubLatentAttn = {
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q_a.weight", "model.layers.*.self_attn.q_a_proj.weight"},
    HubTensor{"blk.*.attn_q_a_norm.weight", "model.layers.*.self_attn.q_a_layernorm.weight"},
    HubTensor{"blk.*.attn_q_b.weight", "model.layers.*.self_attn.q_b_proj.weight"},
    HubTensor{"blk.*.attn_kv_a_mqa.weight", "model.layers.*.self_attn.kv_a_proj_with_mqa.weight"},
    HubTensor{"blk.*.attn_kv_a_norm.weight", "model.layers.*.self_attn.kv_a_layernorm.weight"},
    HubTensor{"blk.*.attn_k_b.weight", "model.layers.*.self_attn.kv_b_proj.weight", HubChange::kSplitLatent},
    HubTensor{"blk.*.attn_v_b.weight", "", HubChange::kSplitLatent},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
};

// Heads, the latent, rotation and scale of the scores.
Result<backend::AttnSpec> read_latent_attention(const Hparams& hparams, int32_t dim, int32_t n_layers);
// Widths of a head beside the rotated part, and the rank of queries.
Result<LatentSpec> read_latent(const Hparams& hparams);

// Refuses by name a config.json with another number of K/V heads than heads.
Result<void> check_hub_heads(const HubConfig& config);

}  // namespace candor::model
