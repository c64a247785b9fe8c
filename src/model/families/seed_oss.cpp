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
constexpr auto kTensors = join(kStemTensors, kOwn, kAttnTensors, kQkvBiases, kGatedFfnTensors);

constexpr std::array kHubOwn = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubOwn, kHubAttn, kHubQkvBiases, kHubGatedFfn);
void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["attention_bias"] = true;
  config["attention_out_bias"] = false;
}
constexpr HubForm kHub[] = {{"seed_oss", "SeedOssForCausalLM", "silu", kHubTensors, {}, nullptr, write_hub}};

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
