// SmolLM3: Llama, where every fourth block rotates nothing. Bakouch et al., 2025; Yang et al., "Rope to Nope", 2025.

#include "model/families/common.h"

namespace candor::model {
namespace {

constexpr size_t kUnrotatedPattern = 4;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);

Expected<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "smollm3"), backend::NormKind::kRms));
  for (size_t layer = kUnrotatedPattern - 1; layer < spec.blocks.size(); layer += kUnrotatedPattern) {
    spec.blocks[layer].attn.rope = {};
  }
  return spec;
}

}  // namespace

Family smollm3_family() {
  return {"smollm3", read, kTensors, {}};
}

}  // namespace candor::model
