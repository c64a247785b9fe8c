// BLOOM: no positions but ALiBi's distances, a norm after the embedding, LayerNorms with biases, a GELU feed-forward.
// BigScience, 2022; Press et al., 2022.

#include "model/families/common.h"

namespace candor::model {
namespace {

using enum TensorRole;

constexpr float kMaxAlibiBias = 8.0f;

constexpr std::array kOwn = {
    TensorName{kEmbedNorm, "token_embd_norm.weight"},
    TensorName{kEmbedNormBias, "token_embd_norm.bias"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

Expected<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "bloom"), backend::NormKind::kLayer));
  spec.embed.has_norm = true;
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope = {};
    block.attn.max_alibi_bias = kMaxAlibiBias;
    block.ffn.gate = backend::GateKind::kGelu;
    block.ffn.is_gated = false;
  }
  return spec;
}

}  // namespace

Family bloom_family() {
  return {"bloom", read, kTensors, {}};
}

}  // namespace candor::model
