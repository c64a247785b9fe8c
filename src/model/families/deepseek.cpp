// DeepSeek V2, V3 and R1, and Kimi K2 and GLM-4.7-Flash, whose models are V3's, and Youtu-LLM, which is V3's without
// experts: latent attention, YaRN whose factor
// scales the scores, experts out of groups with a shared one. DeepSeek-AI, "DeepSeek-V2", 2024; "DeepSeek-V3 technical
// report", 2024.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/rounded_math.h"
#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"
#include "model/families/grouped_experts.h"
#include "model/families/latent_parts.h"
#include "model/hub/hub_rope.h"

namespace candor::model {
namespace deepseek {
namespace {

using nlohmann::json;

// Outputs of each head fill whole panels of packed weights (Ops::linear_heads).
constexpr int32_t kHeadStep = 16;
// YaRN's rule for the factor of lengths: 1 + 0.1 m ln(factor).
constexpr double kYarnShare = 0.1;

constexpr auto kTensors =
    join(kStemTensors, kPreNormTensors, kLatentAttnTensors, kGatedFfnTensors, kMoeTensors, kGroupedTensors);

constexpr auto kHubV2Tensors =
    join(kHubStem, kHubPreNorm, kHubLatentAttn, kHubGatedFfn, kHubExperts, kHubSharedExperts);
constexpr auto kHubV3Tensors = join(kHubV2Tensors, kHubChoiceBias, kHubPrediction);

// Beside its two parts.
constexpr std::string_view kIgnored[] = {"blk.*.attn_kv_b.weight"};

struct KeyName {
  const char* key;
  const char* hub;
};
constexpr KeyName kCounts[] = {
    {"attention.q_lora_rank", "q_lora_rank"},
    {"attention.kv_lora_rank", "kv_lora_rank"},
    {"rope.dimension_count", "qk_rope_head_dim"},
};

// What cosines and sines are multiplied with, where it is not 1; of folders.
constexpr const char* kRotationFactor = "rope.scaling.yarn_rotation_factor";

// Rotary pairs are halves; of folders.
constexpr const char* kHalvesKey = "rope.has_halves";

Result<double> read_hub_rotation(std::string_view prefix, const formats::MetaList& metadata) {
  const auto number = [&](const char* suffix) {
    const formats::MetaValue* value = metadata.find(fmt::format("{}.{}", prefix, suffix));
    const double* found = value == nullptr ? nullptr : std::get_if<double>(value);
    return found == nullptr ? 1.0 : *found;
  };
  return number("rope.scaling.attn_factor") * (1.0 + kYarnShare * rounded_log(number("rope.scaling.factor")));
}

// What the scores are scaled with beside the heads' width, as the converter of llama.cpp writes it.
Result<void> read_hub_yarn(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  if (config.rope().value("rope_type", json()) != "yarn") return {};
  CANDOR_ASSIGN(const std::optional<double> all, rope_number(config, config.rope(), "mscale_all_dim"));
  CANDOR_ASSIGN(const std::optional<double> mscale, rope_number(config, config.rope(), "mscale"));
  metadata.add(fmt::format("{}.rope.scaling.yarn_log_multiplier", prefix),
               static_cast<double>(static_cast<float>(kYarnShare * all.value_or(0.0))));
  CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config, config.rope(), "attention_factor"));
  const bool is_one = !stated && mscale.value_or(0.0) != 0.0 && mscale == all;
  if (!is_one) {
    CANDOR_ASSIGN(const double rotation, read_hub_rotation(prefix, metadata));
    metadata.add(fmt::format("{}.{}", prefix, kRotationFactor), rotation);
  }
  metadata.add(fmt::format("{}.rope.scaling.attn_factor", prefix), 1.0);
  return {};
}

Result<void> read_hub_attention(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  uint64_t sizes[std::size(kCounts)];
  for (size_t i = 0; i < std::size(kCounts); ++i) {
    CANDOR_ASSIGN(sizes[i], hub_count(config, kCounts[i].hub));
    if (sizes[i] > 0) add(kCounts[i].key, sizes[i]);
  }
  CANDOR_TRY(check_hub_heads(config));
  CANDOR_ASSIGN(const uint64_t plain, hub_count(config, "qk_nope_head_dim"));
  CANDOR_ASSIGN(const uint64_t value_dim, hub_count(config, "v_head_dim"));
  add("attention.key_length_mla", plain + sizes[2]);
  add("attention.value_length_mla", value_dim);
  add("attention.key_length", sizes[1] + sizes[2]);
  add("attention.value_length", sizes[1]);
  add("attention.head_count_kv", uint64_t{1});
  for (const char* key : {"attention_bias", "mlp_bias"}) {
    CANDOR_ASSIGN(const std::optional<bool> flag, hub_flag(config, key));
    if (flag.value_or(false)) return config.unsupported(key, true, "false");
  }
  CANDOR_ASSIGN(const std::optional<bool> interleaved, hub_flag(config, "rope_interleave"));
  if (!interleaved.value_or(true)) add(kHalvesKey, true);
  return read_hub_yarn(config, prefix, metadata);
}

// sigmoid: the share that the model's own code computes where config.json names none.
Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata, bool is_sigmoid) {
  CANDOR_TRY(read_hub_attention(config, prefix, metadata));
  return read_hub_grouped(config, prefix, metadata,
                          is_sigmoid ? backend::ExpertShare::kSigmoid : backend::ExpertShare::kSoftmax);
}

Result<void> read_hub_v2(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  return read_hub(config, prefix, metadata, false);
}

Result<void> read_hub_v3(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  return read_hub(config, prefix, metadata, true);
}

void write_hub_attention(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const BlockSpec& block = spec.blocks.front();
  const backend::AttnSpec& attn = block.attn;
  config["num_key_value_heads"] = attn.n_heads;
  config["q_lora_rank"] = block.latent.query_rank > 0 ? json(block.latent.query_rank) : json();
  config["kv_lora_rank"] = attn.latent_dim;
  config["qk_nope_head_dim"] = block.latent.head_dim;
  config["qk_rope_head_dim"] = block.rotated_dim();
  config["head_dim"] = block.rotated_dim();
  config["v_head_dim"] = block.latent.value_dim;
  config["rms_norm_eps"] = shortest_decimal(spec.final_norm.epsilon);
  config.erase("partial_rotary_factor");
  if (attn.rope.pairs == backend::RopePairs::kHalves) config["rope_interleave"] = false;
  if (attn.rope.scaling != backend::RopeScaling::kYarn) return;
  const double width = static_cast<double>(block.latent.head_dim + block.rotated_dim());
  const double length = std::sqrt(static_cast<double>(attn.scale) * std::sqrt(width));
  const double mscale = shortest_decimal(
      static_cast<float>(std::round((length - 1.0) / (kYarnShare * rounded_log(attn.rope.factor)) * 1e6) / 1e6));
  config["rope_scaling"]["mscale"] = mscale;
  config["rope_scaling"]["mscale_all_dim"] = mscale;
  config["rope_scaling"].erase("attention_factor");
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub_attention(spec, config);
  write_hub_grouped(spec, config);
}

// The library takes one dense block where nothing is said.
void write_hub_lite(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub(spec, config);
  auto types = nlohmann::ordered_json::array();
  for (const BlockSpec& block : spec.blocks) types.push_back(block.ffn.is_moe() ? "sparse" : "dense");
  config["mlp_layer_types"] = std::move(types);
}

constexpr HubForm form_of(std::string_view model_type, std::string_view architecture,
                          std::span<const HubTensor> tensors, decltype(HubForm::read) read,
                          decltype(HubForm::write) write = write_hub) {
  return {.model_type = model_type,
          .architecture = architecture,
          .activation = "silu",
          .tensors = tensors,
          .ignored = kHubBuffers,
          .read = read,
          .write = write,
          .reads_partial = false};
}
// Mistral 4: queries grow with their position, and experts stand in one tensor.
Result<void> read_hub_mistral(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_TRY(read_hub(config, prefix, metadata, false));
  CANDOR_ASSIGN(const std::optional<double> share, rope_number(config, config.rope(), "partial_rotary_factor"));
  CANDOR_ASSIGN(const uint64_t rotated, hub_count(config, "qk_rope_head_dim"));
  CANDOR_ASSIGN(const uint64_t plain, hub_count(config, "qk_nope_head_dim"));
  const double implied = static_cast<double>(rotated) / static_cast<double>(std::max<uint64_t>(rotated + plain, 1));
  if (share && *share != implied) {
    return config.unsupported("partial_rotary_factor", *share, "the share of qk_rope_head_dim in a head");
  }
  for (const char* key : {"llama_4_scaling_beta", "original_max_position_embeddings"}) {
    CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config, config.rope(), key));
    if (!stated) return config.bad("rope_parameters", config.rope(), fmt::format("\"{}\", which the model needs", key));
  }
  CANDOR_ASSIGN(const std::optional<double> gain, rope_number(config, config.rope(), "llama_4_scaling_beta"));
  metadata.add(fmt::format("{}.attention.temperature_scale", prefix),
               static_cast<double>(static_cast<float>(gain.value_or(0.0))));
  return {};
}

void write_hub_mistral(const ArchSpec& spec, nlohmann::ordered_json& config) {
  write_hub(spec, config);
  const backend::TemperSpec& temper = spec.blocks.front().attn.temper;
  if (temper.gain > 0.0f) config["rope_scaling"]["llama_4_scaling_beta"] = shortest_decimal(temper.gain);
  for (const char* key : {"scoring_func", "topk_method", "moe_layer_freq", "num_nextn_predict_layers"})
    config.erase(key);
}

constexpr HubForm kHub[] = {
    form_of("deepseek_v2", "DeepseekV2ForCausalLM", kHubV2Tensors, read_hub_v2),
    form_of("deepseek_v3", "DeepseekV3ForCausalLM", kHubV3Tensors, read_hub_v3),
    form_of("kimi_k2", "DeepseekV3ForCausalLM", kHubV3Tensors, read_hub_v3),
    form_of("glm4_moe_lite", "Glm4MoeLiteForCausalLM", kHubV3Tensors, read_hub_v3, write_hub_lite),
};

constexpr auto kDenseTensors = join(kStemTensors, kPreNormTensors, kLatentAttnTensors, kGatedFfnTensors);
constexpr auto kHubDenseTensors = join(kHubStem, kHubPreNorm, kHubLatentAttn, kHubGatedFfn);
constexpr HubForm kDenseHub[] = {{.model_type = "youtu",
                                  .architecture = "YoutuForCausalLM",
                                  .activation = "silu",
                                  .tensors = kHubDenseTensors,
                                  .read = read_hub_attention,
                                  .write = write_hub_attention,
                                  .reads_partial = false}};

constexpr auto kMistralTensors = join(kStemTensors, kPreNormTensors, kLatentAttnTensors, kGatedFfnTensors,
                                      kJoinedMoeTensors, kMoeTensors, kGroupedTensors);
constexpr auto kHubMistralJoined = join(kHubV2Tensors, kHubJoinedExperts);
constexpr std::string_view kImages[] = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                                        "model.multi_modal_projector."};
constexpr HubOuter kMistralOuter[] = {{"mistral3", kImages, ""}};
constexpr HubForm mistral_form(std::span<const HubTensor> tensors) {
  HubForm form = form_of("mistral4", "Mistral4ForCausalLM", tensors, read_hub_mistral, write_hub_mistral);
  form.outer = kMistralOuter;
  form.implies_partial = true;
  return form;
}
constexpr HubForm kMistralHub[] = {mistral_form(kHubV2Tensors), mistral_form(kHubMistralJoined)};

Error bad_size(const Hparams& hparams, std::string_view suffix, int32_t value, const std::string& reason) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("metadata key \"{}\" is {}; {}", hparams.key(suffix), value, reason));
}

// Of keys and values that are expanded from the latent, whatever the file's cache would hold.
struct HeadSizes {
  int32_t key = 0;    // with the rotated part
  int32_t value = 0;
  int32_t rotated = 0;
};

// Files of old say the expanded widths as "attention.key_length", new ones those of the latent.
Result<HeadSizes> read_head_sizes(const Hparams& hparams) {
  const bool is_new = hparams.has("attention.key_length_mla");
  HeadSizes sizes;
  CANDOR_ASSIGN(sizes.key,
                hparams.require_int(is_new ? "attention.key_length_mla" : "attention.key_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(sizes.value,
                hparams.require_int(is_new ? "attention.value_length_mla" : "attention.value_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(sizes.rotated, hparams.require_int("rope.dimension_count", {2, kMaxWidth}));
  if (sizes.rotated >= sizes.key) {
    return bad_size(hparams, "rope.dimension_count", sizes.rotated,
                    fmt::format("expected less than the width of a head, which is {}", sizes.key));
  }
  return sizes;
}

// Scores are scaled by the width of the expanded heads and, with YaRN, by the square of its factor of lengths, which
// turns cosines and sines no longer.
Result<void> read_scale(const Hparams& hparams, int32_t key_width, backend::AttnSpec& attn) {
  double length = 1.0;
  if (attn.rope.scaling == backend::RopeScaling::kYarn) {
    CANDOR_ASSIGN(const double own, hparams.positive_or("rope.scaling.attn_factor", 1.0));
    if (own != 1.0) {
      return fail(ErrorKind::kUnsupported, fmt::format("metadata key \"{}\" is {}; supported: 1",
                                                       hparams.key("rope.scaling.attn_factor"), own));
    }
    CANDOR_ASSIGN(const auto share,
                  formats::meta_float(hparams.file(), hparams.key("rope.scaling.yarn_log_multiplier")));
    // As decimals: files hold 0.1 as f32.
    length += shortest_decimal(static_cast<float>(share.value_or(0.0))) * rounded_log(attn.rope.factor);
    CANDOR_ASSIGN(attn.rope.attention_factor, hparams.positive_or(kRotationFactor, 1.0));
  }
  attn.scale = static_cast<float>(length * length / std::sqrt(static_cast<double>(key_width)));
  if (std::isfinite(attn.scale) && attn.scale > 0.0f) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\" scales scores by {}",
                                                    hparams.key("rope.scaling.yarn_log_multiplier"), attn.scale));
}

Result<ArchSpec> read_dense_decoder(const Hparams& hparams) {
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.sliding_window"}));
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_latent_attention));
  CANDOR_ASSIGN(const LatentSpec latent, read_latent(hparams));
  for (BlockSpec& block : spec.blocks) block.latent = latent;
  return spec;
}

Result<ArchSpec> read_dense(const formats::ModelFile& file) {
  return read_dense_decoder(Hparams(file, "youtu"));
}

Result<ArchSpec> read_decoder_of(const Hparams& hparams) {
  CANDOR_ASSIGN(ArchSpec spec, read_dense_decoder(hparams));
  CANDOR_TRY(leave_prediction(hparams, spec));
  CANDOR_TRY(add_grouped_experts(hparams, spec));
  return spec;
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "deepseek2");
  CANDOR_TRY(hparams.refuse_unless_zero({"attention.temperature_scale"}));
  return read_decoder_of(hparams);
}

Result<ArchSpec> read_mistral(const formats::ModelFile& file) {
  const Hparams hparams(file, "mistral4");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder_of(hparams));
  CANDOR_ASSIGN(const auto stated, formats::meta_float(file, hparams.key("attention.temperature_scale")));
  const int32_t original = spec.blocks.front().attn.rope.original_positions;
  // Files of llama.cpp's converter do not say it: what all published models have.
  const double gain = stated.value_or(original < 1 ? 0.0 : 0.1);
  if (gain != 0.0 && (!(gain > 0.0 && gain <= 1e3) || original < 1)) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is {}; expected 0 to 1000, and \"{}\", which it counts",
                            hparams.key("attention.temperature_scale"), gain,
                            hparams.key("rope.scaling.original_context_length")));
  }
  for (BlockSpec& block : spec.blocks) {
    if (gain != 0.0) block.attn.temper = {.gain = static_cast<float>(gain), .step = original};
    sum_two_best(block.ffn.moe);  // softmax or not
  }
  return spec;
}

}  // namespace
}  // namespace deepseek

Result<backend::AttnSpec> read_latent_attention(const Hparams& hparams, int32_t, int32_t n_layers) {
  backend::AttnSpec attn;
  CANDOR_ASSIGN(attn.n_heads, hparams.uniform("attention.head_count", n_layers, {1, 65536}));
  attn.n_kv_heads = 1;
  using namespace deepseek;
  CANDOR_ASSIGN(const HeadSizes sizes, read_head_sizes(hparams));
  const int64_t most = kMaxWidth / attn.n_heads;
  CANDOR_ASSIGN(attn.latent_dim, hparams.require_int("attention.kv_lora_rank", {1, most}));
  if (attn.latent_dim % kHeadStep != 0) {
    return bad_size(hparams, "attention.kv_lora_rank", attn.latent_dim,
                    fmt::format("expected a multiple of {}", kHeadStep));
  }
  if (sizes.value % kHeadStep != 0) {
    return bad_size(hparams,
                    hparams.has("attention.value_length_mla") ? "attention.value_length_mla" : "attention.value_length",
                    sizes.value, fmt::format("expected a multiple of {}", kHeadStep));
  }
  attn.head_dim = attn.latent_dim + sizes.rotated;
  if (std::max({attn.head_dim, sizes.key, sizes.value}) > most) {
    return bad_size(
        hparams, "attention.head_count", attn.n_heads,
        fmt::format("heads of {} are wider than {} together", std::max(attn.head_dim, sizes.key), kMaxWidth));
  }
  CANDOR_ASSIGN(attn.rope, read_rope(hparams, sizes.rotated));
  CANDOR_ASSIGN(const auto has_halves, formats::meta_bool(hparams.file(), hparams.key(kHalvesKey)));
  attn.rope.pairs = has_halves.value_or(false) ? backend::RopePairs::kHalves : backend::RopePairs::kInterleaved;
  CANDOR_TRY(read_scale(hparams, sizes.key, attn));
  return attn;
}

Result<void> check_hub_heads(const HubConfig& config) {
  const nlohmann::json& n_kv_heads = config["num_key_value_heads"];
  if (n_kv_heads.is_null() || n_kv_heads == config["num_attention_heads"]) return {};
  return config.unsupported("num_key_value_heads", n_kv_heads, "as many as num_attention_heads");
}

Result<LatentSpec> read_latent(const Hparams& hparams) {
  LatentSpec latent;
  CANDOR_ASSIGN(const deepseek::HeadSizes sizes, deepseek::read_head_sizes(hparams));
  latent.head_dim = sizes.key - sizes.rotated;
  latent.value_dim = sizes.value;
  CANDOR_ASSIGN(latent.query_rank, hparams.int_or("attention.q_lora_rank", 0, {0, kMaxWidth}));
  return latent;
}

Family mistral4_family() {
  using namespace deepseek;
  return {"mistral4", read_mistral, kMistralTensors, kIgnored, kMistralHub};
}

Family youtu_family() {
  using namespace deepseek;
  return {"youtu", read_dense, kDenseTensors, kIgnored, kDenseHub};
}

Family deepseek2_family() {
  using namespace deepseek;
  return {"deepseek2", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
