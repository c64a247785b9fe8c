// Qwen2 and Qwen2.5, and MiMo 7B, whose model is theirs: Llama with biases on Q, K and V and rotary pairs in halves;
// with experts, a shared one beside them. Yang et al., 2024. Qwen2.5-VL's text: the pairs' positions are those in time,
// height and width, one part of the pairs after another. Bai et al., "Qwen2.5-VL", 2025.

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "formats/quote.h"
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
constexpr auto kShared = join(kStemTensors, kPreNormTensors, kAttnTensors, kBiases);
constexpr auto kTensors = join(kShared, kGatedFfnTensors);
constexpr auto kMoeModelTensors = join(kShared, kGatedFfnTensors, kMoeTensors, kSharedExpertTensors);

constexpr std::array kHubBiases = {
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
};
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubGatedFfn, kHubBiases);
constexpr auto kHubMoeTensors =
    join(kHubStem, kHubPreNorm, kHubAttn, kHubBiases, kHubGatedFfn, kHubExperts, kHubSharedExpert);

constexpr HubForm kMoeHub[] = {{.model_type = "qwen2_moe",
                                .architecture = "Qwen2MoeForCausalLM",
                                .activation = "silu",
                                .tensors = kHubMoeTensors,
                                .read = read_hub_dense_blocks,
                                .write = write_hub_dense_blocks}};
// MiMo's blocks for multi-token prediction, which read the vector before the embedding.
constexpr std::array kHubPredictionTensors = {
    HubTensor{"blk.*.nextn.eh_proj.weight", "model.layers.*.input_proj.weight", HubChange::kSwapInputs},
    HubTensor{"blk.*.nextn.enorm.weight", "model.layers.*.token_layernorm.weight"},
    HubTensor{"blk.*.nextn.hnorm.weight", "model.layers.*.hidden_layernorm.weight"},
    HubTensor{"blk.*.nextn.shared_head_norm.weight", "model.layers.*.final_layernorm.weight"},
};
constexpr auto kHubMimoTensors = join(kHubTensors, kHubPredictionTensors);
bool predicts(const ArchSpec& spec) {
  return spec.n_prediction_blocks > 0;
}
void write_hub_prediction(const ArchSpec& spec, nlohmann::ordered_json& config) {
  config["num_nextn_predict_layers"] = spec.n_prediction_blocks;
}
constexpr HubRename kHubPredictionNames[] = {{"model.mtp_layers.*.", "model.layers.*."}};
constexpr std::string_view kImages[] = {"vision_tower.",       "multi_modal_projector.",
                                        "model.vision_tower.", "model.multi_modal_projector.",
                                        "image_newline",       "model.image_newline"};
constexpr HubOuter kOuter[] = {{"internvl", kImages, ""}, {"llava_next", kImages, ""}};
constexpr HubForm kHub[] = {
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .activation = "silu",
     .tensors = kHubTensors,
     .outer = kOuter},
    {.model_type = "mimo",
     .architecture = "Qwen2ForCausalLM",
     .activation = "silu",
     .tensors = kHubMimoTensors,
     .write = write_hub_prediction,
     .suits = predicts,
     .prediction = kHubPredictionNames},
};

constexpr std::string_view kVlImages[] = {"visual.", "model.visual."};
constexpr HubOuter kVlOuter[] = {
    {.model_type = "qwen2_5_vl", .left_out = kVlImages, .media = "", .may_be_flat = true},
    {.model_type = "qwen2_vl", .left_out = kVlImages, .media = "", .text_type = "qwen2_vl_text", .may_be_flat = true}};
constexpr HubForm kVlHub[] = {{.model_type = "qwen2_5_vl_text",
                               .architecture = "Qwen2_5_VLTextModel",
                               .activation = "silu",
                               .tensors = kHubTensors,
                               .read = read_hub_sections,
                               .suits = suits_none,
                               .outer = kVlOuter}};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(leave_prediction(hparams, spec));
  CANDOR_TRY(drop_windows(hparams, spec));
  for (BlockSpec& block : spec.blocks) block.attn.rope.pairs = backend::RopePairs::kHalves;
  return spec;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_shared(Hparams(file, "qwen2"));
}

Result<ArchSpec> read_vl(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen2vl");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  for (BlockSpec& block : spec.blocks) CANDOR_TRY(read_rope_axes(hparams, false, block.attn.rope));
  return spec;
}

// Files do not say how weights are shared: it is a softmax over all.
Result<ArchSpec> read_experts(const formats::ModelFile& file) {
  const Hparams hparams(file, "qwen2moe");
  CANDOR_ASSIGN(ArchSpec spec, read_shared(hparams));
  CANDOR_TRY(add_experts_and_shared(hparams, spec));
  CANDOR_ASSIGN(const auto normalise, formats::meta_bool(file, hparams.key("expert_weights_norm")));
  for (BlockSpec& block : spec.blocks) block.ffn.moe.renormalise = normalise.value_or(false);
  return spec;
}

}  // namespace
}  // namespace qwen2

Family qwen2_family() {
  using namespace qwen2;
  return {"qwen2", read, kTensors, {}, kHub};
}

Family qwen2vl_family() {
  using namespace qwen2;
  return {"qwen2vl", read_vl, kTensors, {}, kVlHub};
}

Family qwen2moe_family() {
  using namespace qwen2;
  return {"qwen2moe", read_experts, kMoeModelTensors, {}, kMoeHub};
}

}  // namespace candor::model
