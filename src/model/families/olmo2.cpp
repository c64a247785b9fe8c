// OLMo 2 and 3: norms after each sub-layer instead of before, and norms over the whole of Q and of K. OLMo 3 has a
// window in three blocks of four, whose rotation is not scaled. OLMo Team, 2024 and 2025.

#include "model/families/common.h"

namespace candor::model {
namespace olmo2 {
namespace {

constexpr auto kTensors = join(kStemTensors, kPostNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors,
                               kAttnBiases);

constexpr auto kHubTensors = join(kHubStem, kHubPostNorm, kHubAttn, kHubQkNorm, kHubGatedFfn, kHubAttnBiases);
constexpr HubForm kHub[] = {
    {.model_type = "olmo2",
     .architecture = "Olmo2ForCausalLM",
     .activation = "silu",
     .tensors = kHubTensors,
     .flags = kAttnBiasFlag},
    {.model_type = "olmo3",
     .architecture = "Olmo3ForCausalLM",
     .activation = "silu",
     .tensors = kHubTensors,
     .flags = kAttnBiasFlag},
};

constexpr int32_t kWindowPattern = 4;

// A windowed block rotates by a base alone.
void drop_scaling(double base, backend::RopeSpec& rope) {
  backend::RopeSpec plain;
  plain.n_dims = rope.n_dims;
  plain.base = base;
  rope = plain;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "olmo2");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  const int32_t n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, kWindowPattern));
  const double usual = spec.blocks.front().attn.rope.base;
  CANDOR_ASSIGN(const double window_base, hparams.positive_or("rope.freq_base_swa", usual));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    if (!is_windowed[layer]) block.attn.window_tokens = 0;
    if (block.attn.window_tokens > 0) drop_scaling(window_base, block.attn.rope);
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
