// EXAONE 4: norms after each sub-layer and over each head of Q and K. Its 32B has a window in three blocks of four and
// rotates only there. LG AI Research, 2025.

#include "model/families/common.h"

namespace candor::model {
namespace exaone4 {
namespace {

constexpr int32_t kWindowPattern = 4;

constexpr auto kTensors = join(kStemTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr std::array kHubPostNorm = {
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPostNorm, kHubAttn, kHubQkNorm, kHubGatedFfn);
constexpr HubForm kHub[] = {{"exaone4", "Exaone4ForCausalLM", "silu", kHubTensors}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "exaone4");
  CANDOR_TRY(hparams.refuse_unless_zero({"nextn_predict_layers"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, kWindowPattern));
  const bool is_hybrid = spec.blocks.front().attn.window_tokens > 0;
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.wiring = Wiring::kPostNorm;
    block.qk_norm = QkNorm::kHeads;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    if (!is_hybrid || is_windowed[layer]) continue;
    block.attn.window_tokens = 0;
    block.attn.rope = {};
  }
  return spec;
}

}  // namespace
}  // namespace exaone4

Family exaone4_family() {
  using namespace exaone4;
  return {"exaone4", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
