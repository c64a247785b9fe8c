// OPT: learned positions (of which the hub keeps two more, before the first), LayerNorms with biases, a ReLU
// feed-forward, the head tied. Zhang et al., 2022. Its 350M, which norms afterwards and projects its embeddings, is
// refused.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace opt {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {TensorName{kPositions, "position_embd.weight"}};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kQkvTensors, kQkvBiases, kLayerNormTensors, kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "model.decoder.embed_tokens.weight"},
    HubTensor{"position_embd.weight", "model.decoder.embed_positions.weight", HubChange::kDropTwoRows},
    HubTensor{"output_norm.weight", "model.decoder.final_layer_norm.weight"},
    HubTensor{"output_norm.bias", "model.decoder.final_layer_norm.bias"},
    HubTensor{"blk.*.attn_norm.weight", "model.decoder.layers.*.self_attn_layer_norm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "model.decoder.layers.*.self_attn_layer_norm.bias"},
    HubTensor{"blk.*.attn_q.weight", "model.decoder.layers.*.self_attn.q_proj.weight"},
    HubTensor{"blk.*.attn_q.bias", "model.decoder.layers.*.self_attn.q_proj.bias"},
    HubTensor{"blk.*.attn_k.weight", "model.decoder.layers.*.self_attn.k_proj.weight"},
    HubTensor{"blk.*.attn_k.bias", "model.decoder.layers.*.self_attn.k_proj.bias"},
    HubTensor{"blk.*.attn_v.weight", "model.decoder.layers.*.self_attn.v_proj.weight"},
    HubTensor{"blk.*.attn_v.bias", "model.decoder.layers.*.self_attn.v_proj.bias"},
    HubTensor{"blk.*.attn_output.weight", "model.decoder.layers.*.self_attn.out_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "model.decoder.layers.*.self_attn.out_proj.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "model.decoder.layers.*.final_layer_norm.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "model.decoder.layers.*.final_layer_norm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "model.decoder.layers.*.fc1.weight"},
    HubTensor{"blk.*.ffn_up.bias", "model.decoder.layers.*.fc1.bias"},
    HubTensor{"blk.*.ffn_down.weight", "model.decoder.layers.*.fc2.weight"},
    HubTensor{"blk.*.ffn_down.bias", "model.decoder.layers.*.fc2.bias"},
};

constexpr double kEpsilon = 1e-5;  // of every published model; config.json does not say it

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> norms_before, hub_flag(config, "do_layer_norm_before"));
  if (!norms_before.value_or(true)) {
    return fail(ErrorKind::kUnsupported,
                "config.json: \"do_layer_norm_before\" is false: opt models that norm afterwards are not supported");
  }
  const nlohmann::json& width = config["word_embed_proj_dim"];
  if (!width.is_null() && width != config["hidden_size"]) {
    return config.unsupported("word_embed_proj_dim", width, "the same as hidden_size");
  }
  metadata.add(std::string(prefix) + ".attention.layer_norm_epsilon", kEpsilon);
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  config["activation_function"] = "relu";
  config["do_layer_norm_before"] = true;
  config["word_embed_proj_dim"] = spec.dim;
  config["ffn_dim"] = spec.blocks.front().ffn.ffn_dim;
}
constexpr HubForm kHub[] = {{"opt", "OPTForCausalLM", "relu", kHubTensors, {}, read_hub, write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "opt"), backend::NormKind::kLayer));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kRelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace opt

Family opt_family() {
  using namespace opt;
  return {"opt", read, kTensors, {}, kHub};
}

}  // namespace candor::model
