// Ministral 3: Llama with YaRN whose factor scales nothing, and queries that grow with their position beyond the first
// training's context. Mistral AI, 2025.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "formats/meta_list.h"
#include "model/families/common.h"
#include "model/hub/hub_rope.h"

namespace candor::model {
namespace mistral3 {
namespace {

using backend::RopeScaling;
using nlohmann::json;

constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kAttnTensors, kGatedFfnTensors);
constexpr auto kHubTensors = join(kHubStem, kHubPreNorm, kHubPairedAttn, kHubGatedFfn);
constexpr std::string_view kIgnored[] = {"rope_freqs.weight"};  // part of the RopeSpec

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const std::optional<double> mscale, rope_number(config, config.rope(), "mscale"));
  CANDOR_ASSIGN(const std::optional<double> all, rope_number(config, config.rope(), "mscale_all_dim"));
  CANDOR_ASSIGN(const std::optional<double> gain, rope_number(config, config.rope(), "llama_4_scaling_beta"));
  CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config, config.rope(), "attention_factor"));
  CANDOR_ASSIGN(const std::optional<double> original,
                rope_number(config, config.rope(), "original_max_position_embeddings"));
  if (!gain || !original) {
    return config.bad("rope_parameters", config.rope(),
                      "\"llama_4_scaling_beta\" and \"original_max_position_embeddings\", which the model needs");
  }
  const auto add = [&](const char* suffix, double value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), static_cast<double>(static_cast<float>(value)));
  };
  if (all == 1.0 && mscale == all && !stated) {
    add("rope.scaling.yarn_log_multiplier", *all);
    add("rope.scaling.attn_factor", 1.0);
  }
  add("attention.temperature_scale", *gain);
  return {};
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const backend::AttnSpec& attn = spec.blocks.front().attn;
  config.erase("layer_types");
  if (attn.rope.scaling != RopeScaling::kYarn) return;
  nlohmann::ordered_json& rope = config["rope_scaling"];
  rope["mscale"] = 1.0;
  rope["mscale_all_dim"] = 1.0;
  rope["llama_4_scaling_beta"] = shortest_decimal(attn.temper.gain);
  rope.erase("attention_factor");
}
constexpr std::string_view kImages[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kOuter[] = {{"mistral3", kImages, ""}};
constexpr HubForm kHub[] = {{.model_type = "ministral3",
                             .architecture = "Ministral3ForCausalLM",
                             .activation = "silu",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                              .outer = kOuter}};

Error unsupported(const std::string& key, double value, std::string_view supported) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"{}\" is {}; supported: {}", key, value, supported));
}

// YaRN's factor of lengths is one mscale over another, which are the same.
Result<void> read_factor(const Hparams& hparams, backend::RopeSpec& rope) {
  CANDOR_ASSIGN(const auto stated,
                formats::meta_float(hparams.file(), hparams.key("rope.scaling.yarn_log_multiplier")));
  if (rope.scaling != RopeScaling::kYarn || !stated || *stated == 0.0) return {};
  if (*stated != 1.0) return unsupported(hparams.key("rope.scaling.yarn_log_multiplier"), *stated, "1");
  CANDOR_ASSIGN(const double own, hparams.positive_or("rope.scaling.attn_factor", 1.0));
  if (own != 1.0) return unsupported(hparams.key("rope.scaling.attn_factor"), own, "1");
  rope.attention_factor = 1.0;
  return {};
}

Result<backend::TemperSpec> read_temper(const Hparams& hparams, const backend::RopeSpec& rope) {
  const std::string key = hparams.key("attention.temperature_scale");
  CANDOR_ASSIGN(const auto gain, formats::meta_float(hparams.file(), key));
  if (!gain || *gain == 0.0) return backend::TemperSpec{};
  if (!(*gain > 0.0 && *gain <= 1e3)) return unsupported(key, *gain, "0 to 1000");
  if (rope.original_positions < 1) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is {}, but \"{}\" is absent, which it counts", key, *gain,
                            hparams.key("rope.scaling.original_context_length")));
  }
  return backend::TemperSpec{static_cast<float>(*gain), rope.original_positions};
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "mistral3");
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_count"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms));
  backend::AttnSpec attn = spec.blocks.front().attn;
  CANDOR_TRY(read_factor(hparams, attn.rope));
  CANDOR_ASSIGN(attn.temper, read_temper(hparams, attn.rope));
  for (BlockSpec& block : spec.blocks) block.attn = attn;
  return spec;
}

}  // namespace
}  // namespace mistral3

Family mistral3_family() {
  using namespace mistral3;
  return {"mistral3", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
