// Qwen2 and Qwen2.5, and MiMo 7B, whose model is theirs: Llama with biases on Q, K and V and rotary pairs in halves;
// with experts, a shared one beside them. Yang et al., 2024.

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
constexpr auto kHubMoeTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubBiases, kHubGatedFfn, kHubExperts, kHubSharedExpert);

constexpr HubForm kMoeHub[] = {{.model_type = "qwen2_moe",
                                .architecture = "Qwen2MoeForCausalLM",
                                .activation = "silu",
                                .tensors = kHubMoeTensors,
                                .read = read_hub_dense_blocks,
                                .write = write_hub_dense_blocks}};
// Of MiMo's blocks for multi-token prediction, which are not computed.
constexpr std::string_view kHubPrediction[] = {
    "model.mtp_layers.*.input_layernorm.weight",
    "model.mtp_layers.*.token_layernorm.weight",
    "model.mtp_layers.*.hidden_layernorm.weight",
    "model.mtp_layers.*.post_attention_layernorm.weight",
    "model.mtp_layers.*.final_layernorm.weight",
    "model.mtp_layers.*.input_proj.weight",
    "model.mtp_layers.*.self_attn.q_proj.weight",
    "model.mtp_layers.*.self_attn.q_proj.bias",
    "model.mtp_layers.*.self_attn.k_proj.weight",
    "model.mtp_layers.*.self_attn.k_proj.bias",
    "model.mtp_layers.*.self_attn.v_proj.weight",
    "model.mtp_layers.*.self_attn.v_proj.bias",
    "model.mtp_layers.*.self_attn.o_proj.weight",
    "model.mtp_layers.*.mlp.gate_proj.weight",
    "model.mtp_layers.*.mlp.up_proj.weight",
    "model.mtp_layers.*.mlp.down_proj.weight",
};
constexpr HubForm kHub[] = {
    {"qwen2", "Qwen2ForCausalLM", "silu", kHubTensors},
    {.model_type = "mimo",
     .architecture = "Qwen2ForCausalLM",
     .activation = "silu",
     .tensors = kHubTensors,
     .ignored = kHubPrediction,
     .suits = suits_none,
     .not_computed = "multi-token prediction"},
};

Result<ArchSpec> read_shared(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(drop_windows(hparams, spec));
  for (BlockSpec& block : spec.blocks) block.attn.rope.pairs = backend::RopePairs::kHalves;
  return spec;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_shared(Hparams(file, "qwen2"));
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

Family qwen2moe_family() {
  using namespace qwen2;
  return {"qwen2moe", read_experts, kMoeModelTensors, {}, kMoeHub};
}

}  // namespace candor::model
