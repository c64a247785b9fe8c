// SmolLM3: Llama, where every fourth block rotates nothing. Bakouch et al., 2025; Yang et al., "Rope to Nope", 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace smollm3 {
namespace {

using nlohmann::json;

constexpr size_t kUnrotatedPattern = 4;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kAllBiases);

constexpr auto kHubTensors =
    join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn, kHubPairedAttnBiases, kHubMlpBiases);

// Files of the other format do not say which blocks rotate nothing; folders may (this key is theirs alone).
constexpr const char* kRotated = "rope.rotated_layers";

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const json& list = config["no_rope_layers"];
  if (!list.is_array()) return config.bad("no_rope_layers", list, "a list of 0 and 1");
  std::vector<bool> flags;
  for (const json& flag : list) {
    if (flag != 0 && flag != 1) return config.bad("no_rope_layers", list, "a list of 0 and 1");
    flags.push_back(flag == 1);
  }
  metadata.add(fmt::format("{}.{}", prefix, kRotated), formats::MetaArray(std::move(flags)));
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto flags = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) flags.push_back(block.attn.rope.n_dims > 0 ? 1 : 0);
  config["no_rope_layers"] = std::move(flags);
}
constexpr HubForm kHub[] = {{.model_type = "smollm3",
                             .architecture = "SmolLM3ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .flags = kBiasFlags}};

Result<std::vector<bool>> read_rotated(const Hparams& hparams, size_t n_layers) {
  const formats::MetaValue* value = hparams.file().meta(hparams.key(kRotated));
  std::vector<bool> flags;
  for (size_t layer = 1; layer <= n_layers; ++layer) flags.push_back(layer % kUnrotatedPattern != 0);
  if (value == nullptr) return flags;
  const auto* array = std::get_if<formats::MetaArray>(value);
  const auto* listed = array == nullptr ? nullptr : std::get_if<std::vector<bool>>(array);
  if (listed != nullptr && listed->size() == n_layers) return *listed;
  return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\": expected {} flags, one for each block",
                                                    hparams.key(kRotated), n_layers));
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "smollm3");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(drop_windows(hparams, spec));
  CANDOR_ASSIGN(const std::vector<bool> is_rotated, read_rotated(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (!is_rotated[layer]) spec.blocks[layer].attn.rope = {};
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
