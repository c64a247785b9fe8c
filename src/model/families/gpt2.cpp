// GPT-2: learned positions, LayerNorms with biases, Q, K and V in one tensor, a GELU feed-forward of 4 D, the head
// tied. Radford et al., 2019.

#include "model/families/common.h"

namespace candor::model {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kPositions, "position_embd.weight"},
    TensorName{kQkv, "blk.*.attn_qkv.weight"},
    TensorName{kQkvBias, "blk.*.attn_qkv.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

Expected<ArchSpec> read(const formats::ModelFile& file) {
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

Family gpt2_family() {
  return {"gpt2", read, kTensors, {}};
}

}  // namespace candor::model
