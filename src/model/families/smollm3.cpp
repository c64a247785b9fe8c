// SmolLM3: Llama, where every fourth block rotates nothing. Bakouch et al., 2025; Yang et al., "Rope to Nope", 2025.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace smollm3 {
namespace {

constexpr size_t kUnrotatedPattern = 4;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);

constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);

// Files of the other format do not say which blocks are unrotated, so the pattern is the family's.
Result<void> read_hub(const nlohmann::json& config, std::string_view, formats::MetaList&) {
  CANDOR_ASSIGN(const std::optional<double> interval, hub_number(config, "no_rope_layer_interval"));
  if (!interval || *interval == static_cast<double>(kUnrotatedPattern)) return {};
  return fail(ErrorKind::kUnsupported, "config.json: \"no_rope_layer_interval\" is not 4, which is not supported");
}
constexpr HubForm kHub[] = {{"smollm3", "SmolLM3ForCausalLM", "silu", kHubTensors, {}, read_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(Hparams(file, "smollm3"), backend::NormKind::kRms));
  for (size_t layer = kUnrotatedPattern - 1; layer < spec.blocks.size(); layer += kUnrotatedPattern) {
    spec.blocks[layer].attn.rope = {};
  }
  return spec;
}

}  // namespace
}  // namespace smollm3

Family smollm3_family() {
  using namespace smollm3;
  return {"smollm3", read, kTensors, {}, kHub};
}

}  // namespace candor::model
