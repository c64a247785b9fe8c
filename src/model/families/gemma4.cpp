// Gemma 4: Gemma 3's blocks whose values are normed too and whose scores are not scaled; blocks that see everything
// have wider heads, of which they rotate a part, and may project values as keys; the last blocks read the keys and
// values of the last block of their kind before them. Small models give every block a vector for each token (Google,
// "Gemma 3n", 2025); sparse ones have experts beside the feed-forward, behind norms of their own. Gemma Team, 2026.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "formats/meta_list.h"
#include "formats/quote.h"
#include "model/families/common.h"

namespace candor::model {
namespace gemma4 {
namespace {

using enum TensorRole;
using nlohmann::json;

constexpr std::array kOwn = {
    TensorName{kLayerTable, "per_layer_token_embd.weight"},
    TensorName{kLayerProjection, "per_layer_model_proj.weight"},
    TensorName{kLayerNorm, "per_layer_proj_norm.weight"},
    TensorName{kLayerGate, "blk.*.inp_gate.weight"},
    TensorName{kLayerOut, "blk.*.proj.weight"},
    TensorName{kLayerPostNorm, "blk.*.post_norm.weight"},
    TensorName{kOutScale, "blk.*.layer_output_scale.weight"},
    TensorName{kSharedGate, "blk.*.ffn_gate.weight"},
    TensorName{kSharedUp, "blk.*.ffn_up.weight"},
    TensorName{kSharedDown, "blk.*.ffn_down.weight"},
    TensorName{kSharedPostNorm, "blk.*.post_ffw_norm_1.weight"},
    TensorName{kExpertNorm, "blk.*.pre_ffw_norm_2.weight"},
    TensorName{kExpertPostNorm, "blk.*.post_ffw_norm_2.weight"},
    TensorName{kRouterGain, "blk.*.ffn_gate_inp.scale"},
    TensorName{kExpertScales, "blk.*.ffn_down_exps.scale"},
};
constexpr auto kTensors = join(kStemTensors, kPreNormTensors, kPostNormTensors, kAttnTensors, kQkNormTensors,
                               kGatedFfnTensors, kOwn, kJoinedMoeTensors, kMoeTensors);
// Part of the RopeSpec; and what blocks that read other blocks' keys and values may have all the same.
constexpr std::string_view kIgnored[] = {"rope_freqs.weight", "blk.*.attn_k.weight", "blk.*.attn_v.weight",
                                         "blk.*.attn_k_norm.weight"};

constexpr std::array kHubOwn = {
    HubTensor{"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    HubTensor{"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    HubTensor{"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
    HubTensor{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
    HubTensor{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    HubTensor{"blk.*.ffn_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight"},
    HubTensor{"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
    HubTensor{"blk.*.inp_gate.weight", "model.layers.*.per_layer_input_gate.weight"},
    HubTensor{"blk.*.proj.weight", "model.layers.*.per_layer_projection.weight"},
    HubTensor{"blk.*.post_norm.weight", "model.layers.*.post_per_layer_input_norm.weight"},
    HubTensor{"blk.*.layer_output_scale.weight", "model.layers.*.layer_scalar"},
    HubTensor{"blk.*.post_ffw_norm_1.weight", "model.layers.*.post_feedforward_layernorm_1.weight"},
    HubTensor{"blk.*.pre_ffw_norm_2.weight", "model.layers.*.pre_feedforward_layernorm_2.weight"},
    HubTensor{"blk.*.post_ffw_norm_2.weight", "model.layers.*.post_feedforward_layernorm_2.weight"},
    HubTensor{"blk.*.ffn_gate_inp.weight", "model.layers.*.router.proj.weight", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_inp.scale", "model.layers.*.router.scale", HubChange::kWiden},
    HubTensor{"blk.*.ffn_down_exps.scale", "model.layers.*.router.per_expert_scale", HubChange::kWiden},
    HubTensor{"blk.*.ffn_gate_up_exps.weight", "model.layers.*.experts.gate_up_proj"},
    HubTensor{"blk.*.ffn_down_exps.weight", "model.layers.*.experts.down_proj"},
};
constexpr auto kHubTensors = join(kHubStem, kHubAttn, kHubQkNorm, kHubGatedFfn, kHubOwn);

struct KeyName {
  const char* key;
  const char* hub;
};
constexpr std::string_view kExpertsUsed = "expert_used_count";
constexpr KeyName kCounts[] = {
    {"attention.shared_kv_layers", "num_kv_shared_layers"},
    {"embedding_length_per_layer_input", "hidden_size_per_layer_input"},
    {kExpertsUsed.data(), "top_k_experts"},
};

Error unsupported(const char* key, const json& value, std::string_view supported) {
  return fail(ErrorKind::kUnsupported, fmt::format("config.json: \"{}\" is {}, which is not supported (supported: {})",
                                                   key, formats::in_quotes(value.dump()), supported));
}

template <class Config>
Result<std::optional<uint64_t>> count_in(const Config& config, const char* key) {
  CANDOR_ASSIGN(const std::optional<double> value, hub_number(config, key));
  if (!value) return std::optional<uint64_t>();
  if (*value >= 0.0 && *value <= static_cast<double>(kMaxWidth) && *value == std::floor(*value)) {
    return std::optional(static_cast<uint64_t>(*value));
  }
  return fail(ErrorKind::kInvalidInput,
              fmt::format("config.json: \"{}\" is {}, expected 0 to {}", key, *value, kMaxWidth));
}

// Keys that folders alone have.
constexpr const char* kRowsByLayer = "vocab_size_per_layer_input";
constexpr const char* kSharesProjection = "attention.values_are_keys";
constexpr const char* kSeesImages = "attention.sees_images";  // whole, in blocks with a window
constexpr const char* kImageToken = "image_layer_token";

constexpr const char* kWindowedWidths[] = {"attention.key_length_swa", "attention.value_length_swa",
                                           "rope.dimension_count_swa"};

// Of the class in the `transformers` library, where config.json says nothing.
constexpr uint64_t kGlobalHeadDim = 512;

// Of blocks that see everything: under names of their own, or in the list of what single blocks have.
Result<std::optional<uint64_t>> global_count(const HubConfig& config, const char* own, const char* of_block) {
  CANDOR_ASSIGN(const std::optional<uint64_t> stated, count_in(config, own));
  const json* list = config.find("per_layer_config");
  if (stated || list == nullptr || !list->is_object()) return stated;
  for (const json& block : *list) {
    if (block.is_object() && block.contains(of_block)) return count_in(block, of_block);
  }
  return stated;
}

// Blocks see a window, unless layer_types says that they see everything.
std::vector<bool> windows_of(const HubConfig& config, uint64_t n_layers) {
  std::vector<bool> flags;
  const json* types = config.find("layer_types");
  for (size_t layer = 0; layer < n_layers; ++layer) {
    const bool is_listed = types != nullptr && types->is_array() && layer < types->size();
    flags.push_back(is_listed ? (*types)[layer] == "sliding_attention" : (layer + 1) % 6 != 0);
  }
  return flags;
}

// The models without a tower, whose text has a class of its own.
bool has_unified_class(const HubConfig& config) {
  const json* type = config.stated("model_type");
  return type != nullptr && *type == "gemma4_unified_text";
}

Result<void> read_hub_images(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const json* bidirectional = config.find("use_bidirectional_attention");
  const bool is_usual = has_unified_class(config) && !config.is_stated("use_bidirectional_attention");
  const bool sees_images = is_usual || (bidirectional != nullptr && *bidirectional == "vision");
  metadata.add(fmt::format("{}.{}", prefix, kSeesImages), sees_images);
  CANDOR_ASSIGN(const auto padding, count_in(config, "pad_token_id"));
  if (padding) metadata.add(fmt::format("{}.{}", prefix, kImageToken), *padding);
  return {};
}

Result<void> read_hub(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const auto add = [&](const char* suffix, formats::MetaValue value) {
    metadata.add(fmt::format("{}.{}", prefix, suffix), std::move(value));
  };
  for (const char* key : {"attention_bias", "use_bidirectional_attention"}) {
    const json* value = config.find(key);
    const bool is_off = value == nullptr || *value == false || *value == "vision";
    if (!is_off) return unsupported(key, *value, "models without it");
  }
  const bool is_unified = has_unified_class(config);
  CANDOR_TRY(read_hub_images(config, prefix, metadata));
  for (const KeyName& row : kCounts) {
    if (is_unified && config.stated(row.hub) == nullptr) {  // its class has not the others' defaults
      if (row.key != kExpertsUsed) add(row.key, uint64_t{0});
      continue;
    }
    CANDOR_ASSIGN(const std::optional<uint64_t> count, count_in(config, row.hub));
    if (count) add(row.key, *count);
  }
  CANDOR_ASSIGN(const std::optional<uint64_t> stated_layers, count_in(config, "num_hidden_layers"));
  CANDOR_ASSIGN(const std::optional<uint64_t> head_dim, count_in(config, "head_dim"));
  CANDOR_ASSIGN(const std::optional<uint64_t> kv_heads, count_in(config, "num_key_value_heads"));
  CANDOR_ASSIGN(auto global_dim, global_count(config, "global_head_dim", "head_dim"));
  if (!global_dim && !config.contains("per_layer_config")) {
    global_dim = kGlobalHeadDim;
    config.add_assumed("global_head_dim", kGlobalHeadDim);
  }
  CANDOR_ASSIGN(const auto n_rows, count_in(config, "vocab_size_per_layer_input"));
  if (n_rows) add(kRowsByLayer, *n_rows);
  CANDOR_ASSIGN(const auto has_experts, hub_flag(config, "enable_moe_block"));
  if (!has_experts.value_or(false)) add("expert_count", uint64_t{0});
  CANDOR_ASSIGN(const auto shares_projection, hub_flag(config, "attention_k_eq_v"));
  add(kSharesProjection, shares_projection.value_or(false));
  // As the library: only where values are projected as keys, unless single blocks say it.
  config.find("num_global_key_value_heads");
  const char* own_heads = shares_projection.value_or(false) ? "num_global_key_value_heads" : "";
  CANDOR_ASSIGN(const auto global_heads, global_count(config, own_heads, "num_key_value_heads"));
  if (!stated_layers || *stated_layers > static_cast<uint64_t>(kMaxLayers)) return {};  // refused with the sizes
  const std::vector<bool> is_windowed = windows_of(config, *stated_layers);
  add("attention.sliding_window_pattern", formats::MetaArray(is_windowed));
  if (head_dim) {
    for (const char* key : {"attention.key_length", "attention.value_length"}) add(key, global_dim.value_or(*head_dim));
    for (const char* key : kWindowedWidths) add(key, *head_dim);
  }
  if (kv_heads && global_heads) {
    std::vector<int64_t> heads;
    heads.reserve(is_windowed.size());
    for (const bool windowed : is_windowed) heads.push_back(static_cast<int64_t>(windowed ? *kv_heads : *global_heads));
    add("attention.head_count_kv", formats::MetaArray(std::move(heads)));
  }
  CANDOR_ASSIGN(const auto is_doubled, hub_flag(config, "use_double_wide_mlp"));
  CANDOR_ASSIGN(const std::optional<uint64_t> n_shared, count_in(config, "num_kv_shared_layers"));
  CANDOR_ASSIGN(const std::optional<uint64_t> ffn_dim, count_in(config, "intermediate_size"));
  if (!is_doubled.value_or(false) || !ffn_dim || !n_shared) return {};
  std::vector<int64_t> widths(*stated_layers, static_cast<int64_t>(*ffn_dim));
  for (uint64_t i = 0; i < std::min(*n_shared, *stated_layers); ++i) widths[*stated_layers - 1 - i] *= 2;
  add("feed_forward_length", formats::MetaArray(std::move(widths)));
  return {};
}

void write_heads(const ArchSpec& spec, nlohmann::ordered_json& config) {
  for (const BlockSpec& block : spec.blocks) {
    const bool is_windowed = block.attn.window_tokens > 0;
    config[is_windowed ? "head_dim" : "global_head_dim"] = block.attn.head_dim;
    config[is_windowed ? "num_key_value_heads" : "num_global_key_value_heads"] = block.attn.n_kv_heads;
    if (!is_windowed && !block.shares_kv()) config["attention_k_eq_v"] = block.values_are_keys;
    const backend::RopeSpec& rope = block.attn.rope;
    nlohmann::ordered_json& written = config["rope_parameters"][is_windowed ? "sliding_attention" : "full_attention"];
    written = {{"rope_type", "default"}, {"rope_theta", rope.base}};
    if (is_windowed) continue;
    const auto n_rotated = std::ranges::count(rope.frequency_factors, 1.0f);
    const double share = rope.frequency_factors.empty() ? 1.0 : 2.0 * static_cast<double>(n_rotated) / rope.n_dims;
    written["rope_type"] = "proportional";
    written["partial_rotary_factor"] = share;
  }
}

void write_hub(const ArchSpec& spec, nlohmann::ordered_json& config) {
  const FfnSpec& first = spec.blocks.front().ffn;
  const FfnSpec& last = spec.blocks.back().ffn;
  const auto n_shared = std::ranges::count_if(spec.blocks, &BlockSpec::shares_kv);
  for (const char* key : {"rope_theta", "rope_local_base_freq", "partial_rotary_factor", "num_local_experts",
                          "num_experts_per_tok", "shared_expert_intermediate_size", "norm_topk_prob"}) {
    config.erase(key);
  }
  write_heads(spec, config);
  config["hidden_activation"] = "gelu_pytorch_tanh";
  const auto sees_images = [](const BlockSpec& block) { return block.attn.sees_groups; };
  if (std::ranges::any_of(spec.blocks, sees_images)) config["use_bidirectional_attention"] = "vision";
  config["hidden_size_per_layer_input"] = spec.embed.layer_dim;
  config["vocab_size_per_layer_input"] = spec.vocab;
  config["num_kv_shared_layers"] = n_shared;
  config["use_double_wide_mlp"] = n_shared > 0 && last.ffn_dim == 2 * first.ffn_dim;
  config["enable_moe_block"] = first.is_moe();
  if (!first.is_moe()) return;
  config["intermediate_size"] = first.shared_dim;
  config["top_k_experts"] = first.moe.n_used;
}

constexpr std::string_view kImages[] = {"model.vision_tower.", "model.vision_embedder.", "model.embed_vision.",
                                        "model.audio_tower.", "model.embed_audio."};
constexpr HubOuter kOuter[] = {{"gemma4", kImages, "audio"},
                               {"gemma4_unified", kImages, "audio", "gemma4_unified_text"}};
constexpr HubForm kHub[] = {{.model_type = "gemma4_text",
                             .architecture = "Gemma4ForCausalLM",
                             .activation = "gelu_new",
                             .tensors = kHubTensors,
                             .read = read_hub,
                             .write = write_hub,
                             .outer = kOuter}};

Result<int32_t> read_width(const Hparams& hparams, const char* key, const char* value_key, int32_t fallback) {
  const Hparams::IntRange range{2, kMaxWidth};
  CANDOR_ASSIGN(const int32_t width,
                fallback == 0 ? hparams.require_int(key, range) : hparams.int_or(key, fallback, range));
  CANDOR_ASSIGN(const int32_t values, hparams.int_or(value_key, width, range));
  if (values == width && width % 2 == 0) return width;
  return fail(ErrorKind::kUnsupported,
              fmt::format("metadata key \"{}\" is {} and \"{}\" is {}; expected the same even width", hparams.key(key),
                          width, hparams.key(value_key), values));
}

// Heads, and the rotation of blocks that see everything.
Result<backend::AttnSpec> read_attn(const Hparams& hparams, int32_t, int32_t n_layers) {
  backend::AttnSpec attn;
  CANDOR_ASSIGN(attn.n_heads, hparams.uniform("attention.head_count", n_layers, {1, kMaxWidth / 2}));
  CANDOR_ASSIGN(attn.head_dim, read_width(hparams, "attention.key_length", "attention.value_length", 0));
  attn.n_kv_heads = attn.n_heads;
  attn.scale = 1.0f;
  CANDOR_ASSIGN(attn.rope, read_rope(hparams, attn.head_dim));
  attn.rope.pairs = backend::RopePairs::kHalves;
  return attn;
}

// What blocks with a window have of their own.
Result<backend::AttnSpec> read_windowed(const Hparams& hparams, backend::AttnSpec attn) {
  const int32_t wide = attn.head_dim;
  CANDOR_ASSIGN(attn.head_dim,
                read_width(hparams, "attention.key_length_swa", "attention.value_length_swa", wide));
  CANDOR_ASSIGN(attn.window_tokens, hparams.require_int("attention.sliding_window", {1, INT32_MAX}));
  attn.rope = {};
  attn.rope.pairs = backend::RopePairs::kHalves;
  CANDOR_ASSIGN(attn.rope.n_dims,
                hparams.int_or("rope.dimension_count_swa", attn.head_dim, {2, attn.head_dim}));
  CANDOR_ASSIGN(attn.rope.base, hparams.positive_or("rope.freq_base_swa", attn.rope.base));
  return attn;
}

Result<void> read_heads(const Hparams& hparams, ArchSpec& spec) {
  const auto n_layers = static_cast<int32_t>(spec.blocks.size());
  const backend::AttnSpec wide = spec.blocks.front().attn;
  CANDOR_ASSIGN(const backend::AttnSpec windowed, read_windowed(hparams, wide));
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, 6));
  CANDOR_ASSIGN(const auto kv_heads, hparams.per_layer("attention.head_count_kv", n_layers, {1, wide.n_heads}));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.attn = is_windowed[layer] ? windowed : wide;
    block.attn.n_kv_heads = kv_heads[layer];
    block.values_are_keys =
        !is_windowed[layer] && hparams.file().find(fmt::format("blk.{}.attn_v.weight", layer)) == nullptr;
    CANDOR_ASSIGN(const int32_t n_shared, hparams.int_or("attention.shared_kv_layers", 0, {0, n_layers}));
    CANDOR_ASSIGN(const auto shares, formats::meta_bool(hparams.file(), hparams.key(kSharesProjection)));
    const bool is_stored = layer + static_cast<size_t>(n_shared) < spec.blocks.size();
    if (is_stored && !is_windowed[layer] && shares && *shares != block.values_are_keys) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("config.json: \"attention_k_eq_v\" is {}, but tensor \"blk.{}.attn_v.weight\" is {}; set it "
                              "to {}",
                              *shares, layer, *shares ? "there" : "missing", !*shares));
    }
    const bool is_too_wide = int64_t{wide.n_heads} * block.attn.head_dim > kMaxWidth;
    if (wide.n_heads % kv_heads[layer] == 0 && !is_too_wide) continue;
    return fail(
        ErrorKind::kInvalidInput,
        fmt::format("metadata key \"{}\" is {} in block {}; expected a divisor of \"{}\", which is {}, in heads of "
                    "at most {} together",
                    hparams.key("attention.head_count_kv"), kv_heads[layer], layer, hparams.key("attention.head_count"),
                    wide.n_heads, kMaxWidth));
  }
  return {};
}

// The last blocks read the keys and values of the last one of their kind before them all.
Result<void> read_sharing(const Hparams& hparams, ArchSpec& spec) {
  const auto n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const int32_t n_shared, hparams.int_or("attention.shared_kv_layers", 0, {0, n_layers - 1}));
  const int32_t first = n_layers - n_shared;
  for (int32_t layer = first; layer < n_layers; ++layer) {
    BlockSpec& block = spec.blocks[static_cast<size_t>(layer)];
    for (int32_t other = first - 1; other >= 0 && !block.shares_kv(); --other) {
      const backend::AttnSpec& attn = spec.blocks[static_cast<size_t>(other)].attn;
      if (attn.window_tokens != block.attn.window_tokens) continue;
      block.kv_block = other;
      block.attn = attn;
      block.values_are_keys = false;
    }
    if (block.shares_kv()) continue;
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\" is {}, but no block before block {} has keys and values like those of "
                            "block {}",
                            hparams.key("attention.shared_kv_layers"), n_shared, first, layer));
  }
  return {};
}

// Images: their rows see one another in blocks with a window; and as inputs by block they have those of padding. Files
// of llama.cpp do not say the first: published models with inputs by block do without.
Result<void> read_images(const Hparams& hparams, ArchSpec& spec) {
  const bool has_inputs = spec.embed.layer_dim > 0;
  CANDOR_ASSIGN(const auto stated, formats::meta_bool(hparams.file(), hparams.key(kSeesImages)));
  const bool sees_images = stated.value_or(!has_inputs);
  for (BlockSpec& block : spec.blocks) block.attn.sees_groups = sees_images && block.attn.window_tokens > 0;
  if (!has_inputs) return {};
  CANDOR_ASSIGN(const auto padding, formats::meta_int(hparams.file(), "tokenizer.ggml.padding_token_id"));
  const int64_t usual = padding && *padding >= 0 && *padding < spec.vocab ? *padding : 0;
  CANDOR_ASSIGN(spec.embed.layer_image_token,
                hparams.int_or(kImageToken, static_cast<int32_t>(usual), {0, spec.vocab - 1}));
  return {};
}

Result<void> add_experts(const Hparams& hparams, ArchSpec& spec) {
  CANDOR_ASSIGN(const int32_t n_experts, hparams.int_or("expert_count", 0, {0, 65536}));
  if (n_experts == 0) return {};
  CANDOR_ASSIGN(backend::MoeSpec moe, read_moe(hparams));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  moe.renormalise = true;
  moe.has_expert_scales = true;
  for (BlockSpec& block : spec.blocks) {
    block.ffn = {.ffn_dim = ffn_dim,
                 .gate = block.ffn.gate,
                 .moe = moe,
                 .shared_dim = block.ffn.ffn_dim,
                 .is_shared_gated = false,
                 .has_parted_norms = true};
  }
  return {};
}

Result<ArchSpec> read(const formats::ModelFile& file) {
  const Hparams hparams(file, "gemma4");
  CANDOR_ASSIGN(ArchSpec spec, read_decoder(hparams, backend::NormKind::kRms, read_attn));
  spec.embed.scale = std::sqrt(static_cast<float>(spec.dim));
  const Hparams::IntRange range{0, kMaxWidth / static_cast<int64_t>(spec.blocks.size())};
  CANDOR_ASSIGN(spec.embed.layer_dim, hparams.int_or("embedding_length_per_layer_input", 0, range));
  if (const TensorView* table = file.find("per_layer_token_embd.weight"); table != nullptr && hparams.has(kRowsByLayer)) {
    CANDOR_ASSIGN(const int32_t n_rows, hparams.require_int(kRowsByLayer, {1, kMaxVocab}));
    if (table->shape[0] != n_rows) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("config.json: \"vocab_size_per_layer_input\" is {}, but the table has {} rows; set it to {}",
                              n_rows, table->shape[0], table->shape[0]));
    }
  }
  CANDOR_ASSIGN(const auto cap, formats::meta_float(file, hparams.key("final_logit_softcapping")));
  spec.head.logits.softcap = static_cast<float>(cap.value_or(0.0));
  CANDOR_TRY(read_heads(hparams, spec));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    BlockSpec& block = spec.blocks[layer];
    block.wiring = Wiring::kSandwich;
    block.qk_norm = QkNorm::kHeads;
    block.has_value_norm = true;
    block.ffn.gate = backend::GateKind::kGelu;
    block.layer_dim = spec.embed.layer_dim;
    block.has_out_scale = file.find(fmt::format("blk.{}.layer_output_scale.weight", layer)) != nullptr;
  }
  CANDOR_TRY(read_images(hparams, spec));
  CANDOR_TRY(read_sharing(hparams, spec));
  CANDOR_TRY(add_experts(hparams, spec));
  return spec;
}

}  // namespace
}  // namespace gemma4

Family gemma4_family() {
  using namespace gemma4;
  return {"gemma4", read, kTensors, kIgnored, kHub};
}

}  // namespace candor::model
