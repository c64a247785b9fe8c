// Persimmon: LayerNorms with biases, also over each head of Q and K, rotary pairs in halves of a part of each head, Q, K
// and V in one tensor, a feed-forward of squared ReLU. Adept, 2023.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace persimmon {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn, kQkNormTensors, kQkNormBiases);

constexpr std::array kHubOwn = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output_norm.weight", "model.final_layernorm.weight"},
    HubTensor{"output_norm.bias", "model.final_layernorm.bias"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "model.layers.*.self_attn.query_key_value.weight", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_qkv.bias", "model.layers.*.self_attn.query_key_value.bias", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.dense.bias"},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.dense_h_to_4h.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.mlp.dense_h_to_4h.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.dense_4h_to_h.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.mlp.dense_4h_to_h.bias"},
};
constexpr auto kHubTensors = join(kHubPreNorm, kHubOwn, kHubQkLayerNorms);
constexpr std::string_view kHubIgnored[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["hidden_act"] = "relu2";
  config["qk_layernorm"] = spec.blocks.front().qk_norm != QkNorm::kNone;
}
constexpr HubForm kHub[] = {{.model_type = "persimmon",
                             .architecture = "PersimmonForCausalLM",
                             .activation = "relu2",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .write = write_hub,
                             .flags = kQkLayerNormFlag}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "persimmon"), backend::NormKind::kLayer));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = file.find("blk.0.attn_q_norm.weight") == nullptr ? QkNorm::kNone : QkNorm::kHeads;
    block.ffn.gate = backend::GateKind::kReluSquared;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace persimmon

Family persimmon_family() {
  using namespace persimmon;
  return {"persimmon", read, kTensors, {}, kHub};
}

}  // namespace candor::model
