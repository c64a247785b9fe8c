// StableLM: Llama with LayerNorms that have biases and rotary pairs in halves of a part of each head; in its 12B
// attention and feed-forward stand side by side behind one norm (its norms by head differ between heads, and are
// refused). Bellagente et al., 2024.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace stablelm {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kFinalNormBias, "output_norm.bias"},
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kAttnNormBias, "blk.*.attn_norm.bias"},
    TensorName{kFfnNorm, "blk.*.ffn_norm.weight", kOptional},
    TensorName{kFfnNormBias, "blk.*.ffn_norm.bias", kOptional},
};
constexpr auto kTensors = join(kStemTensors, kAttnTensors, kQkvBiases, kOwn, kGatedFfnTensors);

constexpr std::array kHubOwn = {
    HubTensor{"output_norm.bias", "model.norm.bias"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.post_attention_layernorm.bias"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkvBiases, kHubGatedFfn, kHubOwn);
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["use_parallel_residual"] = is_parallel(spec.blocks.front().wiring);
}
constexpr HubFlag kFlags[] = {{"use_qkv_bias", kHubQkvBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "stablelm",
                             .architecture = "StableLmForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .write = write_hub,
                             .flags = kFlags}};

// Files name no wiring that can be relied on: early ones say parallel of every model. Blocks that have a second norm
// use it.
Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "stablelm"), backend::NormKind::kLayer));
  const bool has_second_norm = file.find("blk.0.ffn_norm.weight") != nullptr;
  for (BlockSpec& block : spec.blocks) {
    block.wiring = has_second_norm ? Wiring::kPreNorm : Wiring::kParallel;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
  }
  return spec;
}

}  // namespace
}  // namespace stablelm

Family stablelm_family() {
  using namespace stablelm;
  return {"stablelm", read, kTensors, {}, kHub};
}

}  // namespace candor::model
