// Qwen2 and Qwen2.5: Llama with biases on Q, K and V and rotary pairs in halves. Yang et al., 2024.

#include "model/families/common.h"

namespace candor::model {
namespace qwen2 {
namespace {

using enum TensorRole;

constexpr std::array kBiases = {
    TensorName{kQBias, "blk.*.attn_q.bias"},
    TensorName{kKBias, "blk.*.attn_k.bias"},
    TensorName{kVBias, "blk.*.attn_v.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kBiases);

constexpr std::array kHubBiases = {
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubGatedFfn, kHubBiases);
constexpr HubForm kHub[] = {{"qwen2", "Qwen2ForCausalLM", "silu", kHubTensors}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen2");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) block.attn.rope.pairs = backend::RopePairs::kHalves;
  return spec;
}

}  // namespace
}  // namespace qwen2

Family qwen2_family() {
  using namespace qwen2;
  return {"qwen2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
