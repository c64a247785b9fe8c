// Qwen3 and Qwen3-MoE: RMS norms over each head of Q and K, rotary pairs in halves; with experts, a router in every
// block. Yang et al., 2025. Qwen3-VL's text: rotary pairs of time, height and width by turns, and images that also
// enter behind the first blocks. Bai et al., "Qwen3-VL", 2025.

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/hub/hub_outer.h"

namespace candor::model {
namespace qwen3 {
namespace {

constexpr auto kShared = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors);
constexpr auto kDenseTensors = join(kShared, kGatedFfnTensors, kAttnBiases);
constexpr auto kMoeModelTensors = join(kShared, kGatedFfnTensors, kMoeTensors, kAttnBiases);

constexpr auto kHubShared = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubAttnBiases);
constexpr auto kHubDenseTensors = join(kHubShared, kHubGatedFfn);
constexpr auto kHubMoeTensors = join(kHubShared, kHubGatedFfn, kHubExperts);
constexpr std::string_view kImages[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kOuter[] = {{"internvl", kImages, ""}};
constexpr HubForm kDenseHub[] = {{.model_type = "qwen3",
                                  .architecture = "Qwen3ForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDenseTensors,
                                  .outer = kOuter,
                                  .flags = kAttnBiasFlag}};
constexpr HubForm kMoeHub[] = {{.model_type = "qwen3_moe",
                                .architecture = "Qwen3MoeForCausalLM",
                                .activation = "silu",
                                .tensors = kHubMoeTensors,
                                .read = read_hub_dense_blocks,
                                .write = write_hub_dense_blocks,
                                .flags = kAttnBiasFlag}};

Result<void> read_vl_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub_sections(config, prefix, metadata));
  CANDOR_ASSIGN(const uint64_t n_deep, stated_count(config, kDeepKey));
  metadata.add(std::string(prefix) + ".n_deepstack_layers", n_deep);
  return {};
}
constexpr std::string_view kVlImages[] = {"model.visual."};
constexpr HubOuter kVlOuter[] = {{"qwen3_vl", kVlImages, ""}};
constexpr HubForm kVlHub[] = {{.model_type = "qwen3_vl_text",
                               .architecture = "Qwen3VLTextModel",
                               .activation = "silu",
                               .tensors = kHubDenseTensors,
                               .read = read_vl_hub,
                               .suits = suits_none,
                               .outer = kVlOuter,
                               .flags = kAttnBiasFlag}};

// Published checkpoints have the experts' inputs before their outputs; what the library saves has them behind.
constexpr HubExperts kHubVlJoined[] = {
    {"model.layers.*.mlp.experts.gate_up_proj", {"blk.*.ffn_gate_exps", "blk.*.ffn_up_exps"}, true, "hidden_size"},
    {"model.layers.*.mlp.experts.down_proj", {"blk.*.ffn_down_exps", ""}, false, "moe_intermediate_size"},
};
constexpr std::array kHubRouter = {
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.weight", HubChange::kWiden}};
constexpr auto kHubVlMoeTensors = join(kHubShared, kHubGatedFfn, kHubRouter);
Result<void> read_vl_moe_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_vl_hub(config, prefix, metadata));
  return read_hub_dense_blocks(config, prefix, metadata);
}
constexpr HubOuter kVlMoeOuter[] = {{"qwen3_vl_moe", kVlImages, ""}};
constexpr HubForm kVlMoeHub[] = {{.model_type = "qwen3_vl_moe_text",
                                  .architecture = "Qwen3VLMoeTextModel",
                                  .activation = "silu",
                                  .tensors = kHubVlMoeTensors,
                                  .read = read_vl_moe_hub,
                                  .experts = kHubVlJoined,
                                  .suits = suits_none,
                                  .outer = kVlMoeOuter,
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

Result<ArchSpec> add_images(const Hparams& hparams, ArchSpec spec) {
  for (BlockSpec& block : spec.blocks) CANDOR_TRY(read_rope_axes(hparams, true, block.attn.rope));
  CANDOR_ASSIGN(spec.n_deep, hparams.int_or("n_deepstack_layers", 0, {0, static_cast<int64_t>(spec.blocks.size())}));
  return spec;
}

Result<ArchSpec> read_vl(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen3vl");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  return add_images(hparams, std::move(spec));
}

Result<ArchSpec> read_with_experts(const Hparams& hparams) {
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

Result<ArchSpec> read_experts(const formats::ModelFile& file) {
  return read_with_experts(Hparams(file, "qwen3moe"));
}

Result<ArchSpec> read_vl_experts(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen3vlmoe");
  CANDOR_ASSIGN(ArchSpec spec, read_with_experts(hparams));
  return add_images(hparams, std::move(spec));
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

Family qwen3vl_family() {
  using namespace qwen3;
  return {"qwen3vl", read_vl, kDenseTensors, {}, kVlHub};
}

Family qwen3vlmoe_family() {
  using namespace qwen3;
  return {"qwen3vlmoe", read_vl_experts, kMoeModelTensors, {}, kVlMoeHub};
}

}  // namespace candor::model
