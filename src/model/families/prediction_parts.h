#pragma once
// Tensors for multi-token prediction, which the files of several families hold and the engine does not compute.

#include <array>
#include <string_view>

namespace candor::model {

// A block for multi-token prediction, as Qwen3-Next's and those after it are published.
inline constexpr std::array kPredictionBlock = {
    std::string_view("mtp.fc.weight"),
    std::string_view("mtp.norm.weight"),
    std::string_view("mtp.pre_fc_norm_embedding.weight"),
    std::string_view("mtp.pre_fc_norm_hidden.weight"),
    std::string_view("mtp.layers.*.input_layernorm.weight"),
    std::string_view("mtp.layers.*.post_attention_layernorm.weight"),
    std::string_view("mtp.layers.*.self_attn.q_proj.weight"),
    std::string_view("mtp.layers.*.self_attn.k_proj.weight"),
    std::string_view("mtp.layers.*.self_attn.v_proj.weight"),
    std::string_view("mtp.layers.*.self_attn.o_proj.weight"),
    std::string_view("mtp.layers.*.self_attn.q_norm.weight"),
    std::string_view("mtp.layers.*.self_attn.k_norm.weight"),
    std::string_view("mtp.layers.*.mlp.gate_proj.weight"),
    std::string_view("mtp.layers.*.mlp.up_proj.weight"),
    std::string_view("mtp.layers.*.mlp.down_proj.weight"),
};

}  // namespace candor::model
