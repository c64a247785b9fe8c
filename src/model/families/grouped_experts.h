#pragma once
// The mixture of experts of DeepSeek, which later families use too: its metadata, tensors and config.json keys.

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "backend/op_specs.h"
#include "base/error.h"
#include "formats/meta_list.h"
#include "model/arch_spec.h"
#include "model/hparams.h"
#include "model/hub/hub_form.h"
#include "model/tensor_roles.h"

namespace candor::model {

// Beside the tensors of experts: the bias for the choice, and the shared expert.
inline constexpr std::array kGroupedTensors = {
    TensorName{TensorRole::kChoiceBias, "blk.*.exp_probs_b.bias"},
    TensorName{TensorRole::kSharedGate, "blk.*.ffn_gate_shexp.weight"},
    TensorName{TensorRole::kSharedUp, "blk.*.ffn_up_shexp.weight"},
    TensorName{TensorRole::kSharedDown, "blk.*.ffn_down_shexp.weight"},
};

inline constexpr std::array kHubSharedExperts = {
    HubTensor{"blk.*.ffn_gate_shexp.weight", "model.layers.*.mlp.shared_experts.gate_proj.weight"},
    HubTensor{"blk.*.ffn_up_shexp.weight", "model.layers.*.mlp.shared_experts.up_proj.weight"},
    HubTensor{"blk.*.ffn_down_shexp.weight", "model.layers.*.mlp.shared_experts.down_proj.weight"},
};
inline constexpr std::array kHubChoiceBias = {
    HubTensor{"blk.*.exp_probs_b.bias", "model.layers.*.mlp.gate.e_score_correction_bias", HubChange::kWiden},
};

// Ignored tensors: what can be computed.
inline constexpr std::string_view kHubBuffers[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};

// Each of several groups is as good as its two best experts together.
void sum_two_best(backend::MoeSpec& moe);

// DeepSeek's experts (DeepSeek-AI, 2024): blocks from "leading_dense_block_count" on have them, out of groups where
// there are any, with a shared one that counts whole; shares are sigmoids ("expert_gating_func" is 2) or a softmax.
Result<void> add_grouped_experts(const Hparams& hparams, ArchSpec& spec);

// Their keys, from config.json and back. share: what the model's own code computes where config.json says nothing.
Result<void> read_hub_grouped(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata,
                              backend::ExpertShare share);
void write_hub_grouped(const ArchSpec& spec, nlohmann::ordered_json& config);

}  // namespace candor::model
