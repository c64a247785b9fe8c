// Granite 3: Llama with four multipliers: of the embedding, of the scores before softmax (instead of the root of a
// head's width), of what each sub-layer adds, and a divisor of the logits. Granite Team, IBM, 2024. MiniCPM has three
// of them under other names (Hu et al., 2024).

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/families/granite.h"

namespace candor::model {
namespace granite {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors, kAllBiases);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);

constexpr auto kHubBiased = join(kHubTensors, kHubPairedAttnBiases, kHubMlpBiases);
constexpr HubForm kHub[] = {{.model_type = "granite",
                             .architecture = "GraniteForCausalLM",
                             .activation = "silu",
                             .tensors = kHubBiased,
                             .read = read_hub_multipliers,
                             .write = write_hub_multipliers,
                             .flags = kBiasFlags}};

Result<ArchSpec> read_scaled(const Hparams& hparams) {
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_count", "expert_shared_feed_forward_length"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_TRY(read_multipliers(hparams, spec));
  return spec;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  return read_scaled(Hparams(file, "granite"));
}

// MiniCPM's names: what the sub-layers add is divided by the root of the number of blocks, logits by how often the
// width holds that of the smallest model.
Result<double> require_number(const HubConfig& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  if (value && *value > 0.0 && *value <= 1e9) return *value;
  return fail(ErrorKind::kInvalidInput,
              std::string("config.json: \"") + key + "\" is absent or not a number above 0; a minicpm model needs it");
}
Result<void> read_hub_minicpm(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const double embedding, require_number(config, "scale_emb"));
  CANDOR_ASSIGN(const double depth, require_number(config, "scale_depth"));
  CANDOR_ASSIGN(const double base, require_number(config, "dim_model_base"));
  CANDOR_ASSIGN(const double n_layers, require_number(config, "num_hidden_layers"));
  CANDOR_ASSIGN(const double width, require_number(config, "hidden_size"));
  const auto add = [&](std::string_view key, double value) {
    metadata.add(std::string(prefix).append(key), static_cast<double>(static_cast<float>(value)));
  };
  add(".embedding_scale", embedding);
  add(".residual_scale", depth / std::sqrt(n_layers));
  add(".logit_scale", width / base);
  return {};
}
void write_hub_minicpm(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const auto n_layers = static_cast<double>(spec.blocks.size());
  config["scale_emb"] = shortest_decimal(spec.embed.scale);
  config["scale_depth"] = static_cast<double>(spec.blocks.front().residual_scale) * std::sqrt(n_layers);
  config["dim_model_base"] = static_cast<int64_t>(std::lround(spec.dim * static_cast<double>(spec.head.logits.scale)));
}
constexpr HubForm kMinicpmHub[] = {
    {"minicpm", "MiniCPMForCausalLM", "silu", kHubTensors, {}, read_hub_minicpm, write_hub_minicpm}};

// Older files lack the multipliers, which differ between the models.
Result<ArchSpec> read_minicpm(const formats::ModelFile& file) {
  const Hparams hparams(file, "minicpm");
  for (const char* key : {"embedding_scale", "residual_scale"}) CANDOR_TRY(hparams.require_positive(key));
  return read_scaled(hparams);
}

}  // namespace
}  // namespace granite

namespace {

struct Multiplier {
  const char* hub;
  std::string_view key;
};
constexpr Multiplier kMultipliers[] = {{"embedding_multiplier", ".embedding_scale"},
                                       {"attention_multiplier", ".attention.scale"},
                                       {"residual_multiplier", ".residual_scale"},
                                       {"logits_scaling", ".logit_scale"}};

}  // namespace

Result<void> read_hub_multipliers(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  for (const Multiplier& row : kMultipliers) {
    CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, row.hub));
    metadata.add(std::string(prefix).append(row.key), value.value_or(1.0));
  }
  return {};
}

void write_hub_multipliers(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  config["embedding_multiplier"] = shortest_decimal(spec.embed.scale);
  config["attention_multiplier"] = shortest_decimal(block.attn.scale);
  config["residual_multiplier"] = shortest_decimal(block.residual_scale);
  config["logits_scaling"] = shortest_decimal(1.0f / spec.head.logits.scale);
}

Result<void> read_multipliers(const Hparams& hparams, ArchSpec& spec) {
  CANDOR_ASSIGN(const double embedding, hparams.positive_or("embedding_scale", 1.0));
  CANDOR_ASSIGN(const double residual, hparams.positive_or("residual_scale", 1.0));
  CANDOR_ASSIGN(const double divisor, hparams.require_positive("logit_scale"));
  spec.embed.scale = static_cast<float>(embedding);
  for (BlockSpec& block : spec.blocks) block.residual_scale = static_cast<float>(residual);
  spec.head.logits.scale = static_cast<float>(1.0 / divisor);
  return {};
}

Family granite_family() {
  using namespace granite;
  return {"granite", read, kTensors, kIgnored, kHub};
}

Family minicpm_family() {
  using namespace granite;
  return {"minicpm", read_minicpm, kTensors, kIgnored, kMinicpmHub};
}

}  // namespace candor::model
