// GPT-2: learned positions, LayerNorms with biases, Q, K and V in one tensor, a GELU feed-forward of 4 D, the head
// tied. Radford et al., 2019.

#include "model/families/common.h"

namespace candor::model {
namespace gpt2 {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kPositions, "position_embd.weight"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

// The first checkpoints have no "transformer." before their names: hub_folder tries both.
constexpr std::array kHubTensors = {
    HubTensor{"token_embd.weight", "transformer.wte.weight"},
    HubTensor{"position_embd.weight", "transformer.wpe.weight"},
    HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
    HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
    HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_1.weight"},
    HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_1.bias"},
    HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.attn.c_attn.weight", HubChange::kTranspose},
    HubTensor{"blk.*.attn_qkv.bias", "transformer.h.*.attn.c_attn.bias"},
    HubTensor{"blk.*.attn_output.weight", "transformer.h.*.attn.c_proj.weight", HubChange::kTranspose},
    HubTensor{"blk.*.attn_output.bias", "transformer.h.*.attn.c_proj.bias"},
    HubTensor{"blk.*.ffn_norm.weight", "transformer.h.*.ln_2.weight"},
    HubTensor{"blk.*.ffn_norm.bias", "transformer.h.*.ln_2.bias"},
    HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.c_fc.weight", HubChange::kTranspose},
    HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.c_fc.bias"},
    HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.c_proj.weight", HubChange::kTranspose},
    HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.c_proj.bias"},
};
constexpr std::string_view kHubIgnored[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};
constexpr HubForm kHub[] = {{.model_type = "gpt2",
                             .architecture = "GPT2LMHeadModel",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .ignored = kHubIgnored,
                             .has_old_keys = true}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "gpt2"), backend::NormKind::kLayer));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace
}  // namespace gpt2

Family gpt2_family() {
  using namespace gpt2;
  return {"gpt2", read, kTensors, {}, kHub};
}

}  // namespace candor::model
