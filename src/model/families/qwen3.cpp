// Qwen3 and Qwen3-MoE: RMS norms over each head of Q and K, rotary pairs in halves; with experts, a router in every
// block. Yang et al., 2025.

#include "model/families/common.h"

namespace candor::model {
namespace qwen3 {
namespace {

constexpr auto kShared = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors);
constexpr auto kDenseTensors = join(kShared, kGatedFfnTensors, kAttnBiases);
constexpr auto kMoeModelTensors = join(kShared, kGatedFfnTensors, kMoeTensors, kAttnBiases);

constexpr auto kHubShared = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubAttnBiases);
constexpr auto kHubDenseTensors = join(kHubShared, kHubGatedFfn);
constexpr auto kHubMoeTensors = join(kHubShared, kHubGatedFfn, kHubExperts);
constexpr HubForm kDenseHub[] = {{.model_type = "qwen3",
                                  .architecture = "Qwen3ForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDenseTensors,
                                  .flags = kAttnBiasFlag}};
constexpr HubForm kMoeHub[] = {{.model_type = "qwen3_moe",
                                .architecture = "Qwen3MoeForCausalLM",
                                .activation = "silu",
                                .tensors = kHubMoeTensors,
                                .read = read_hub_dense_blocks,
                                .write = write_hub_dense_blocks,
                                .flags = kAttnBiasFlag}};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(drop_windows(hparams, spec));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kHeads;
  }
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  return read_shared(Hparams(file, "qwen3"));
}

Result<ArchSpec> read_experts(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen3moe");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  CANDOR_ASSIGN(const backend::MoeSpec moe, read_moe(hparams));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const std::vector<bool> is_dense, read_dense_blocks(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (is_dense[layer]) continue;
    spec.blocks[layer].ffn.ffn_dim = ffn_dim;
    spec.blocks[layer].ffn.moe = moe;
  }
  return spec;
}

}  // namespace
}  // namespace qwen3

Family qwen3_family() {
  using namespace qwen3;
  return {"qwen3", read_dense, kDenseTensors, {}, kDenseHub};
}

Family qwen3moe_family() {
  using namespace qwen3;
  return {"qwen3moe", read_experts, kMoeModelTensors, {}, kMoeHub};
}

}  // namespace candor::model
