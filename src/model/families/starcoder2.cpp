// StarCoder 2: LayerNorms with biases, rotary pairs in halves, grouped attention and an ungated GELU feed-forward, all
// with biases. Lozhkov et al., 2024.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace starcoder2 {
namespace {

using enum TensorRole;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kQkvTensors, kQkvBiases,
                               with_optional(kLayerNormTensors, {kAttnOutBias, kUpBias, kDownBias}));

constexpr std::array kHubOwn = {
    HubTensor{"output_norm.bias", "model.norm.bias"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias"},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.c_fc.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.mlp.c_fc.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.c_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.mlp.c_proj.bias"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkvBiases, kHubOwn);

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "norm_epsilon", config);
}
constexpr std::string_view kFfnBiasNames[] = {"model.layers.*.mlp.c_fc.bias", "model.layers.*.mlp.c_proj.bias"};
constexpr HubFlag kFlags[] = {{"use_bias", kHubAttnBiasNames}, {"use_bias", kFfnBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "starcoder2",
                             .architecture = "Starcoder2ForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "starcoder2"), backend::NormKind::kLayer));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace starcoder2

Family starcoder2_family() {
  using namespace starcoder2;
  return {"starcoder2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
