// GPT-J: attention and feed-forward side by side behind one norm, interleaved rotary pairs of a part of each head, a
// GELU feed-forward and a head with biases (Wang and Komatsuzaki, 2021). CodeGen is the same model with Q, K and V in
// one tensor (Nijkamp et al., 2022).

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace gptj {
namespace {

constexpr std::array kJoined = {TensorName{TensorRole::kQkv, "blk.*.attn_qkv.weight", kOptional}};
constexpr auto kTensors = join(kStemTensors, kJoined, kAttnTensors, kOneNormTensors, kHeadBiasTensors, kUngatedFfnTensors);

constexpr std::array kHubStemAndFfn = {
    HubTensor{"token_embd.weight", "transformer.wte.weight"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"output.weight", "lm_head.weight"},
    HubTensor{"output.bias", "lm_head.bias"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_1.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_1.bias"},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.attn.out_proj.weight"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.fc_in.weight"},
    HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.fc_in.bias"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.fc_out.weight"},
    HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.fc_out.bias"},
};
constexpr std::array kHubApart = {
    HubTensor{"blk.*.attn_q.weight", "transformer.h.*.attn.q_proj.weight"},
    HubTensor{"blk.*.attn_k.weight", "transformer.h.*.attn.k_proj.weight"},
    HubTensor{"blk.*.attn_v.weight", "transformer.h.*.attn.v_proj.weight"},
};
constexpr std::array kHubJoined = {
    HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.attn.qkv_proj.weight", HubChange::kSplitQuarters},
};
constexpr auto kHubTensors = join(kHubStemAndFfn, kHubApart);
constexpr auto kHubCodegen = join(kHubStemAndFfn, kHubJoined);
constexpr std::string_view kHubIgnored[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias",
                                            "transformer.h.*.attn.causal_mask"};

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<double> n_dims, hub_number(config, "rotary_dim"));
  if (n_dims && *n_dims >= 0.0 && *n_dims <= static_cast<double>(kMaxWidth)) {
    metadata.add(std::string(prefix) + ".rope.dimension_count", static_cast<uint64_t>(*n_dims));
  }
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  config["activation_function"] = "gelu_new";
  config["rotary_dim"] = spec.blocks.front().attn.rope.n_dims;
  config.erase("partial_rotary_factor");
}
// The rows of the joined tensor stand in quarters of the heads.
Result<void> read_hub_codegen(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t n_heads, hub_count(config, "n_head"));
  if (n_heads % 4 != 0) return config.bad("n_head", n_heads, "a multiple of 4");
  return read_hub(config, prefix, metadata);
}
constexpr HubForm kHub[] = {{.model_type = "gptj",
                             .architecture = "GPTJForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .read = read_hub,
                             .write = write_hub,
                             .has_old_keys = true},
                            {.model_type = "codegen",
                             .architecture = "CodeGenForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubCodegen,
                             .ignored = kHubIgnored,
                             .read = read_hub_codegen,
                             .write = write_hub,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "gptj"), backend::NormKind::kLayer));
  for (BlockSpec& block : spec.blocks) {
    block.wiring = Wiring::kParallel;
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace gptj

Family gptj_family() {
  using namespace gptj;
  return {"gptj", read, kTensors, {}, kHub};
}

}  // namespace candor::model
