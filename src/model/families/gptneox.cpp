// GPT-NeoX and Pythia: attention and feed-forward side by side, each with a norm of its own, rotary pairs in halves of
// a part of each head, Q, K and V in one tensor, an exact-GELU feed-forward. Black et al., 2022; Biderman et al., 2023.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace gptneox {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias", kOptional},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, with_optional(kLayerNormTensors, {TensorRole::kAttnOutBias}), kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "gpt_neox.embed_in.weight"},
    HubTensor{"output.weight", "embed_out.weight"},
    HubTensor{"output_norm.weight", "gpt_neox.final_layer_norm.weight"},
    HubTensor{"output_norm.bias", "gpt_neox.final_layer_norm.bias"},
    HubTensor{"blk.*.attn_norm.weight", "gpt_neox.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.attn_norm.bias", "gpt_neox.layers.*.input_layernorm.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "gpt_neox.layers.*.attention.query_key_value.weight", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_qkv.bias", "gpt_neox.layers.*.attention.query_key_value.bias", HubChange::kSplitHeads},
    HubTensor{"blk.*.attn_output.weight", "gpt_neox.layers.*.attention.dense.weight"},
    HubTensor{"blk.*.attn_output.bias", "gpt_neox.layers.*.attention.dense.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "gpt_neox.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "gpt_neox.layers.*.post_attention_layernorm.bias"},
    HubTensor{"blk.*.ffn_up.weight", "gpt_neox.layers.*.mlp.dense_h_to_4h.weight"},
    HubTensor{"blk.*.ffn_up.bias", "gpt_neox.layers.*.mlp.dense_h_to_4h.bias"},
    HubTensor{"blk.*.ffn_down.weight", "gpt_neox.layers.*.mlp.dense_4h_to_h.weight"},
    HubTensor{"blk.*.ffn_down.bias", "gpt_neox.layers.*.mlp.dense_4h_to_h.bias"},
};
constexpr std::string_view kHubIgnored[] = {"gpt_neox.layers.*.attention.bias",
                                            "gpt_neox.layers.*.attention.masked_bias",
                                            "gpt_neox.layers.*.attention.rotary_emb.inv_freq"};

constexpr const char* kParallel = "use_parallel_residual";
constexpr const char* kTanh = "gelu_by_tanh";  // of folders alone
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> parallel, hub_flag(config, kParallel));
  metadata.add(std::string(prefix) + "." + kParallel, parallel.value_or(true));
  const nlohmann::json& activation = config["hidden_act"];
  const bool is_tanh = activation == "gelu_new" || activation == "gelu_fast" || activation == "gelu_pytorch_tanh";
  if (!is_tanh && activation != "gelu") return config.unsupported("hidden_act", activation, "gelu, gelu_new, gelu_fast");
  metadata.add(std::string(prefix) + "." + kTanh, is_tanh);
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["hidden_act"] = spec.blocks.front().ffn.gate == backend::GateKind::kGelu ? "gelu_new" : "gelu";
  config["rotary_pct"] = config.value("partial_rotary_factor", 1.0);
  config["rotary_emb_base"] = config["rope_theta"];
  for (const char* key : {"partial_rotary_factor", "rope_theta"}) config.erase(key);
  config[kParallel] = is_parallel(spec.blocks.front().wiring);
}
constexpr std::string_view kBiasNames[] = {"gpt_neox.layers.*.attention.query_key_value.bias",
                                           "gpt_neox.layers.*.attention.dense.bias"};
constexpr HubFlag kFlags[] = {{"attention_bias", kBiasNames}};
constexpr HubForm kHub[] = {{.model_type = "gpt_neox",
                             .architecture = "GPTNeoXForCausalLM",
                             .activation = "",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .read = read_hub,
                             .write = write_hub,
                             .flags = kFlags}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "gptneox");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  CANDOR_ASSIGN(const auto parallel, formats::meta_bool(file, hparams.key(kParallel)));
  CANDOR_ASSIGN(const auto by_tanh, formats::meta_bool(file, hparams.key(kTanh)));
  for (BlockSpec& block : spec.blocks) {
    block.wiring = parallel.value_or(true) ? Wiring::kParallelTwoNorms : Wiring::kPreNorm;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = by_tanh.value_or(false) ? backend::GateKind::kGelu : backend::GateKind::kGeluErf;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace gptneox

Family gptneox_family() {
  using namespace gptneox;
  return {"gptneox", read, kTensors, {}, kHub};
}

}  // namespace candor::model
