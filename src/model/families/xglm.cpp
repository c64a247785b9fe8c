// XGLM: sinusoidal positions (written out as a table where the file is read), embeddings scaled by sqrt(D), LayerNorms
// with biases, an exact-GELU feed-forward, the head tied. Lin et al., 2021; positions of Vaswani et al., 2017.

#include <cmath>
#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace xglm {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kPositions, "position_embd.weight"}, TensorName{kQ, "blk.*.attn_q.weight"},
    TensorName{kQBias, "blk.*.attn_q.bias"},        TensorName{kK, "blk.*.attn_k.weight"},
    TensorName{kKBias, "blk.*.attn_k.bias"},        TensorName{kV, "blk.*.attn_v.weight"},
    TensorName{kVBias, "blk.*.attn_v.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "model.embed_tokens.weight"},
    HubTensor{"output_norm.weight", "model.layer_norm.weight"},
    HubTensor{"output_norm.bias", "model.layer_norm.bias"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.self_attn_layer_norm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "model.layers.*.self_attn_layer_norm.bias"},
    HubTensor{"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "model.layers.*.self_attn.out_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.layers.*.self_attn.out_proj.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.final_layer_norm.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "model.layers.*.final_layer_norm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.layers.*.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.layers.*.fc1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.layers.*.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.layers.*.fc2.bias"},
};

constexpr double kEpsilon = 1e-5;  // of every published model; config.json does not say it
Result<void> read_hub(const HubConfig&, std::string_view prefix, formats::MetaList& metadata) {
  metadata.add(std::string(prefix) + ".attention.layer_norm_epsilon", kEpsilon);
  return {};
}
constexpr HubForm kHub[] = {{.model_type = "xglm",
                             .architecture = "XGLMForCausalLM",
                             .activation = "gelu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "xglm"), backend::NormKind::kLayer));
  spec.embed = {.scale = std::sqrt(static_cast<float>(spec.dim)), .has_positions = true};
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kGeluErf;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace xglm

Family xglm_family() {
  using namespace xglm;
  return {"xglm", read, kTensors, {}, kHub};
}

}  // namespace candor::model
