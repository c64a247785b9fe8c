// dots.llm1: Qwen3's attention with DeepSeek's experts behind the first blocks. rednote-hilab, 2025.

#include <nlohmann/json.hpp>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"

namespace candor::model {
namespace dots1 {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kQkNormTensors, kGatedFfnTensors,
                               kMoeTensors, kGroupedTensors, kAttnBiases);
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubQkNorm, kHubGatedFfn, kHubExperts,
                                  kHubSharedExperts, kHubChoiceBias, kHubAttnBiases);

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  return read_hub_grouped(config, prefix, metadata, backend::ExpertShare::kSigmoid);
}
constexpr HubForm kHub[] = {{.model_type = "dots1",
                             .architecture = "Dots1ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub_grouped,
                             .flags = kAttnBiasFlag}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "dots1");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(drop_windows(hparams, spec));
  for (BlockSpec& block : spec.blocks) {
    block.attn.rope.pairs = backend::RopePairs::kHalves;
    block.qk_norm = QkNorm::kHeads;
  }
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  return spec;
}

}  // namespace
}  // namespace dots1

Family dots1_family() {
  using namespace dots1;
  return {"dots1", read, kTensors, {}, kHub};
}

}  // namespace candor::model
