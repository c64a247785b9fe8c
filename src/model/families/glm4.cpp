// GLM-4 (dense): norms before each sub-layer (9B of 2024) or before and after it (0414), interleaved rotary pairs of
// half of each head, gate and up in one tensor, biases on Q, K and V. Zhipu AI, 2025.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace glm4 {
namespace {

using enum TensorRole;

constexpr std::array kFused = {
    TensorName{kGateUp, "blk.*.ffn_up.weight"},
    TensorName{kDown, "blk.*.ffn_down.weight"},
};
constexpr auto kFirstTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkvBiases, kFused);
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kPostNormTensors, kAttnTensors, kQkvBiases, kFused);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_self_attn_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_mlp_layernorm.weight"},
};
constexpr std::array kHubFused = {
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.mlp.gate_up_proj.weight"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
};
constexpr auto kFirstHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkvBiases, kHubFused);
constexpr auto kHubTensors = join(kHubStem, kHubAttn, kHubQkvBiases, kHubOwn, kHubFused);
constexpr HubForm kFirstHub[] = {{.model_type = "glm",
                                  .architecture = "GlmForCausalLM",
                                  .activation = "silu",
                                  .tensors = kFirstHubTensors,
                                  .flags = kQkvBiasFlag}};
constexpr HubForm kHub[] = {{.model_type = "glm4",
                             .architecture = "Glm4ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .flags = kQkvBiasFlag}};

Result<ArchSpec> read_first(const formats::ModelFile& file) {
  return read_decoder(Hparams(file, "chatglm"), backend::NormKind::kRms);
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "glm4");
  CANDOR_TRY(hparams.refuse_unless_zero({"nextn_predict_layers"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) block.wiring = Wiring::kSandwich;
  return spec;
}

}  // namespace
}  // namespace glm4

Family chatglm_family() {
  using namespace glm4;
  return {"chatglm", read_first, kFirstTensors, {}, kFirstHub};
}

Family glm4_family() {
  using namespace glm4;
  return {"glm4", read, kTensors, {}, kHub};
}

}  // namespace candor::model
