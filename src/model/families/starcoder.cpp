// StarCoder and SantaCoder (GPT-BigCode): GPT-2 with one K/V head for all queries. Li et al., 2023; Shazeer, 2019.

#include <nlohmann/json.hpp>

#include "model/families/common.h"

namespace candor::model {
namespace starcoder {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kPositions, "position_embd.weight"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "transformer.wte.weight"},
    HubTensor{"position_embd.weight", "transformer.wpe.weight"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_1.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_1.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.attn.c_attn.weight"},
    HubTensor{"blk.*.attn_qkv.bias", "transformer.h.*.attn.c_attn.bias"},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.attn.c_proj.weight"},
    HubTensor{"blk.*.attn_output.bias", "transformer.h.*.attn.c_proj.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "transformer.h.*.ln_2.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "transformer.h.*.ln_2.bias"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.c_fc.weight"},
    HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.c_fc.bias"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.c_proj.weight"},
    HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.c_proj.bias"},
};
constexpr std::string_view kHubIgnored[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};

Result<void> read_hub(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<bool> shares_kv, hub_flag(config, "multi_query"));
  if (!shares_kv.value_or(true)) {
    return fail(
        ErrorKind::kUnsupported,
        "config.json: \"multi_query\" is false: gpt_bigcode models with K and V for every head are not supported");
  }
  const std::string key = std::string(prefix) + ".attention.head_count_kv";
  if (metadata.find(key) == nullptr) metadata.add(key, uint64_t{1});
  return {};
}
void write_hub(const ArchSpec&, nlohmann::ordered_json& config) {
  config["activation_function"] = "gelu_pytorch_tanh";
  config["multi_query"] = true;
}
constexpr HubForm kHub[] = {{.model_type = "gpt_bigcode",
                             .architecture = "GPTBigCodeForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .read = read_hub,
                             .write = write_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "starcoder"), backend::NormKind::kLayer));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace starcoder

Family starcoder_family() {
  using namespace starcoder;
  return {"starcoder", read, kTensors, {}, kHub};
}

}  // namespace candor::model
