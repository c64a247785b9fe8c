// Qwen3 and Qwen3-MoE: RMS norms over each head of Q and K, rotary pairs in halves; with experts, a router in every
// block. Yang et al., 2025.

#include "model/families/common.h"

namespace candor::model {
namespace qwen3 {
namespace {

constexpr auto kShared = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors);
constexpr auto kDenseTensors = join(kShared, kGatedFfnTensors);
constexpr auto kMoeModelTensors = join(kShared, kMoeTensors);

constexpr auto kHubShared = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm);
constexpr auto kHubDenseTensors = join(kHubShared, kHubGatedFfn);
constexpr auto kHubMoeTensors = join(kHubShared, kHubExperts);
constexpr HubForm kDenseHub[] = {{"qwen3", "Qwen3ForCausalLM", "silu", kHubDenseTensors}};
constexpr HubForm kMoeHub[] = {{"qwen3_moe", "Qwen3MoeForCausalLM", "silu", kHubMoeTensors}};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
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
  for (BlockSpec& block : spec.blocks) {
    block.ffn.ffn_dim = ffn_dim;
    block.ffn.moe = moe;
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
