// Seed-OSS: Llama with biases on Q, K and V and rotary pairs in halves. ByteDance Seed, 2025.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace seed_oss {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.post_attention_norm.weight"},
};
constexpr auto kTensors = join(kStemTensors, kOwn, kAttnTensors, kAllBiases, kGatedFfnTensors);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubOwn, kHubAttn, kHubAttnBiases, kHubGatedFfn, kHubMlpBiases);
constexpr HubFlag kFlags[] = {{"attention_bias", kHubQkvBiasNames},
                              {"attention_out_bias", kHubOutBiasNames},
                              {"mlp_bias", kHubMlpBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "seed_oss",
                             .architecture = "SeedOssForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .flags = kFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "seed_oss"), backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) block.attn.rope.pairs = backend::RopePairs::kHalves;
  return spec;
}

}  // namespace
}  // namespace seed_oss

Family seed_oss_family() {
  using namespace seed_oss;
  return {"seed_oss", read, kTensors, {}, kHub};
}

}  // namespace candor::model
