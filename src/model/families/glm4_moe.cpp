// GLM-4.5 and its successors: grouped attention that rotates a part of each head, norms over heads in the larger
// models, DeepSeek's experts behind the first blocks. Z.ai, "GLM-4.5", 2025.

#include <span>

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"

namespace candor::model {
namespace glm4_moe {
namespace {

using enum TensorRole;

constexpr std::array kNorms = {
    TensorName{kAttnNorm, "blk.*.attn_norm.weight"},
    TensorName{kFfnNorm, "blk.*.post_attention_norm.weight"},
};
constexpr auto kTensors = join(kStemTensors, kNorms, kAttnTensors, kQkvBiases, kQkNormTensors, kGatedFfnTensors,
                               kMoeTensors, kGroupedTensors);

constexpr std::array kHubNorms = {
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};
constexpr auto kHubTensors = join(kHubStem, kHubNorms, kHubAttn, kHubQkvBiases, kHubQkNorm, kHubGatedFfn, kHubExperts,
                                  kHubSharedExperts, kHubChoiceBias, kHubPrediction);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  return read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid);
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  // The library takes a half where nothing is said.
  config["partial_rotary_factor"] = static_cast<double>(attn.rope.n_dims) / attn.head_dim;
  write_hub_grouped(spec, config);
}

constexpr std::string_view kNormNames[] = {"model.layers.*.self_attn.q_norm.weight",
                                           "model.layers.*.self_attn.k_norm.weight"};
constexpr HubFlag kFlags[] = {{"attention_bias", kHubQkvBiasNames}, {"use_qk_norm", kNormNames}};
constexpr HubForm kHub[] = {{.model_type = "glm4_moe",
                             .architecture = "Glm4MoeForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .ignored = kHubBuffers,
                             .read = read_hub,
                             .write = write_hub,
                             .flags = kFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "glm4moe");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  const bool has_norms = file.find("blk.0.attn_q_norm.weight") != nullptr;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    if (has_norms) block.qk_norm = QkNorm::kHeads;
  }
  CANDOR_TRY(leave_prediction(hparams, spec));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  return spec;
}

}  // namespace
}  // namespace glm4_moe

Family glm4moe_family() {
  using namespace glm4_moe;
  return {"glm4moe", read, kTensors, {}, kHub};
}

}  // namespace candor::model
