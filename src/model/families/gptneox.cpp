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
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

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
Result<void> read_hub(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> parallel, hub_flag(config, kParallel));
  metadata.add(std::string(prefix) + "." + kParallel, parallel.value_or(true));
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_norm_epsilon(spec, "layer_norm_eps", config);
  config["hidden_act"] = "gelu";
  config["rotary_pct"] = config.value("partial_rotary_factor", 1.0);
  config[kParallel] = is_parallel(spec.blocks.front().wiring);
}
constexpr HubForm kHub[] = {{"gpt_neox", "GPTNeoXForCausalLM", "gelu", kHubTensors, kHubIgnored, read_hub, write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "gptneox");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kLayer));
  CANDOR_ASSIGN(const auto parallel, formats::meta_bool(file, hparams.key(kParallel)));
  for (BlockSpec& block : spec.blocks) {
    block.wiring = parallel.value_or(true) ? Wiring::kParallelTwoNorms : Wiring::kPreNorm;
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.ffn.gate = backend::GateKind::kGeluErf;
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
