// Phi-1, Phi-1.5 and Phi-2: attention and feed-forward side by side behind one norm, rotary pairs in halves of a part
// of each head, biases everywhere, also on the head. Li et al., 2023.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace phi2 {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {TensorName{kAttnOutBias, "blk.*.attn_output.bias"}};
constexpr auto kTensors =
    join(kStemTensors, kAttnTensors, kQkvBiases, kOwn, kOneNormTensors, kHeadBiasTensors, kUngatedFfnTensors,
         kQkNormTensors, kQkNormBiases);

constexpr std::array kHubOwn = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.final_layernorm.weight"},
    HubTensor{"output_norm.bias", "model.final_layernorm.bias"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output.bias", "lm_head.bias"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.dense.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.mlp.fc1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.mlp.fc2.bias"},
};
constexpr auto kHubTensors = join(kHubOwn, kHubQkvBiases, kHubQkLayerNorms);
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["qk_layernorm"] = spec.blocks.front().qk_norm != QkNorm::kNone;
}
constexpr HubForm kHub[] = {{.model_type = "phi",
                             .architecture = "PhiForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kQkLayerNormFlag}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "phi2"), backend::NormKind::kLayer));
  const bool has_norms = file.find("blk.0.attn_q_norm.weight") != nullptr;
  for (BlockSpec& block : spec.blocks) {
    block.qk_norm = has_norms ? QkNorm::kHeads : QkNorm::kNone;
    block.wiring = Wiring::kParallel;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace phi2

Family phi2_family() {
  using namespace phi2;
  return {"phi2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
