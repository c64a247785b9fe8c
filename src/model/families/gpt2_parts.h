#pragma once
// What GPT-2 and the families after its pattern share: learned positions, Q, K and V in one tensor, an ungated GELU
// feed-forward, and the names of their tensors in Hugging Face checkpoints.

#include "model/families/common.h"

namespace candor::model {

inline constexpr auto kGpt2Tensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors,
                                          std::array{TensorName{TensorRole::kPositions, "position_embd.weight"},
                                                     TensorName{TensorRole::kQkv, "blk.*.attn_qkv.weight"},
                                                     TensorName{TensorRole::kQkvBias, "blk.*.attn_qkv.bias"}});

// matrices: what has to be done to the weights of a block.
constexpr auto gpt2_hub_tensors(HubChange matrices) {
  return std::array{
      HubTensor{"token_embd.weight", "transformer.wte.weight"},
      HubTensor{"position_embd.weight", "transformer.wpe.weight"},
      HubTensor{"output_norm.weight", "transformer.ln_f.weight"},
      HubTensor{"output_norm.bias", "transformer.ln_f.bias"},
      HubTensor{"blk.*.attn_norm.weight", "transformer.h.*.ln_1.weight"},
      HubTensor{"blk.*.attn_norm.bias", "transformer.h.*.ln_1.bias"},
      HubTensor{"blk.*.attn_qkv.weight", "transformer.h.*.attn.c_attn.weight", matrices},
      HubTensor{"blk.*.attn_qkv.bias", "transformer.h.*.attn.c_attn.bias"},
      HubTensor{"blk.*.attn_output.weight", "transformer.h.*.attn.c_proj.weight", matrices},
      HubTensor{"blk.*.attn_output.bias", "transformer.h.*.attn.c_proj.bias"},
      HubTensor{"blk.*.ffn_norm.weight", "transformer.h.*.ln_2.weight"},
      HubTensor{"blk.*.ffn_norm.bias", "transformer.h.*.ln_2.bias"},
      HubTensor{"blk.*.ffn_up.weight", "transformer.h.*.mlp.c_fc.weight", matrices},
      HubTensor{"blk.*.ffn_up.bias", "transformer.h.*.mlp.c_fc.bias"},
      HubTensor{"blk.*.ffn_down.weight", "transformer.h.*.mlp.c_proj.weight", matrices},
      HubTensor{"blk.*.ffn_down.bias", "transformer.h.*.mlp.c_proj.bias"},
  };
}

inline constexpr std::string_view kGpt2HubIgnored[] = {"transformer.h.*.attn.bias", "transformer.h.*.attn.masked_bias"};

inline Result<ArchSpec> read_gpt2(const formats::ModelFile& file, std::string_view architecture) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, architecture), backend::NormKind::kLayer));
  spec.embed.has_positions = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace candor::model
