// Nemotron 3 and 4 (Minitron): LayerNorms with biases, rotary pairs in halves of a part of each head, a feed-forward of
// squared ReLU without a gate. Parmar et al., 2024; So et al., "Primer", 2021.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace nemotron {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kFinalNormBias, "output_norm.bias"},  TensorName{kAttnNormBias, "blk.*.attn_norm.bias"},
    TensorName{kFfnNormBias, "blk.*.ffn_norm.bias"}, TensorName{kUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kOwn, kAttnBiases, kUngatedBiases);

constexpr std::array kHubOwn = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output_norm.weight", "model.norm.weight", HubChange::kAddOne},
    HubTensor{"output_norm.bias", "model.norm.bias"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight", HubChange::kAddOne},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
};
constexpr auto kHubTensors = join(kHubOwn, kHubAttn, kHubAttnBiases, kHubUngatedBiases);
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "norm_eps", config);
  config["hidden_act"] = "relu2";
}
constexpr HubForm kHub[] = {{.model_type = "nemotron",
                             .architecture = "NemotronForCausalLM",
                             .activation = "relu2",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kUngatedBiasFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "nemotron"), backend::NormKind::kLayer));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kReluSquared;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace nemotron

Family nemotron_family() {
  using namespace nemotron;
  return {"nemotron", read, kTensors, {}, kHub};
}

}  // namespace candor::model
