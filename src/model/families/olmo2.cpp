// OLMo 2: norms after each sub-layer instead of before, and norms over the whole of Q and of K. OLMo Team, 2024.

#include "model/families/common.h"

namespace candor::model {
namespace olmo2 {
namespace {

constexpr auto kTensors = join(kStemTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors);

constexpr std::array kHubPostNorm = {
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPostNorm, kHubAttn, kHubQkNorm, kHubGatedFfn);
constexpr HubForm kHub[] = {{"olmo2", "Olmo2ForCausalLM", "silu", kHubTensors}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "olmo2");
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.sliding_window"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  for (BlockSpec& block : spec.blocks) {
    block.wiring = Wiring::kPostNorm;
    block.qk_norm = QkNorm::kWhole;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
  }
  return spec;
}

}  // namespace
}  // namespace olmo2

Family olmo2_family() {
  using namespace olmo2;
  return {"olmo2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
