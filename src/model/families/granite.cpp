// Granite 3: Llama with four multipliers: of the embedding, of the scores before softmax (instead of the root of a
// head's width), of what each sub-layer adds, and a divisor of the logits. Granite Team, IBM, 2024.

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"

namespace candor::model {
namespace granite {
namespace {

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);

// 1 where config.json is silent.
struct Multiplier {
  const char* hub;
  std::string_view key;
};
constexpr Multiplier kMultipliers[] = {{"embedding_multiplier", ".embedding_scale"},
                                       {"attention_multiplier", ".attention.scale"},
                                       {"residual_multiplier", ".residual_scale"},
                                       {"logits_scaling", ".logit_scale"}};
Result<void> read_hub(const nlohmann::json& config, std::string_view prefix, formats::MetaList& metadata) {
  for (const Multiplier& row : kMultipliers) {
    CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, row.hub));
    metadata.add(std::string(prefix).append(row.key), value.value_or(1.0));
  }
  return {};
}
void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  config["embedding_multiplier"] = shortest_decimal(spec.embed.scale);
  config["attention_multiplier"] = shortest_decimal(block.attn.scale);
  config["residual_multiplier"] = shortest_decimal(block.residual_scale);
  config["logits_scaling"] = shortest_decimal(1.0f / spec.head.logits.scale);
}
constexpr HubForm kHub[] = {{"granite", "GraniteForCausalLM", "silu", kHubTensors, {}, read_hub, write_hub}};

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "granite");
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_count", "expert_shared_feed_forward_length"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  CANDOR_ASSIGN(const double embedding, hparams.positive_or("embedding_scale", 1.0));
  CANDOR_ASSIGN(const double residual, hparams.positive_or("residual_scale", 1.0));
  CANDOR_ASSIGN(const double divisor, hparams.require_positive("logit_scale"));
  spec.embed.scale = static_cast<float>(embedding);
  for (BlockSpec& block : spec.blocks) block.residual_scale = static_cast<float>(residual);
  spec.head.logits.scale = static_cast<float>(1.0 / divisor);
  return spec;
}

}  // namespace
}  // namespace granite

Family granite_family() {
  using namespace granite;
  return {"granite", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
