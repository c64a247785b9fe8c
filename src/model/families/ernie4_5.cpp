// ERNIE 4.5 (dense): Llama whose published weights rotate interleaved pairs. Baidu, 2025.

#include "model/families/common.h"

namespace candor::model {
namespace ernie4_5 {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubAttn, kHubGatedFfn);
constexpr HubForm kHub[] = {{"ernie4_5", "Ernie4_5ForCausalLM", "silu", kHubTensors}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_decoder(Hparams(file, "ernie4_5"), backend::NormKind::kRms);
}

}  // namespace
}  // namespace ernie4_5

Family ernie4_5_family() {
  using namespace ernie4_5;
  return {"ernie4_5", read, kTensors, {}, kHub};
}

}  // namespace candor::model
