// XGLM: sinusoidal positions (written out as a table where the file is read), embeddings scaled by sqrt(D), LayerNorms
// with biases, an exact-GELU feed-forward, the head tied. Lin et al., 2021; positions of Vaswani et al., 2017.

#include <cmath>

#include "model/families/common.h"

namespace candor::model {
namespace {

using enum TensorRole;

constexpr std::array kOwn = {
    TensorName{kPositions, "position_embd.weight"}, TensorName{kQ, "blk.*.attn_q.weight"},
    TensorName{kQBias, "blk.*.attn_q.bias"},        TensorName{kK, "blk.*.attn_k.weight"},
    TensorName{kKBias, "blk.*.attn_k.bias"},        TensorName{kV, "blk.*.attn_v.weight"},
    TensorName{kVBias, "blk.*.attn_v.bias"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kLayerNormTensors, kOwn);

Expected<ArchSpec> read(const formats::ModelFile& file) {
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

Family xglm_family() {
  return {"xglm", read, kTensors, {}};
}

}  // namespace candor::model
