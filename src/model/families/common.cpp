#include "model/families/common.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/text_head.h"
#include "tensor/tensor_view.h"

namespace candor::model {

Result<ArchSpec> read_decoder(const Hparams& hparams, backend::NormKind norm, AttentionReader read_attn,
                              int32_t least_ffn) {
  ArchSpec spec;
  spec.family = hparams.prefix();
  CANDOR_ASSIGN(spec.dim, hparams.require_int("embedding_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(spec.vocab, read_vocab(hparams));
  CANDOR_ASSIGN(spec.max_positions, hparams.require_int("context_length", {1, kMaxPositions}));
  CANDOR_ASSIGN(const int32_t n_layers, hparams.require_int("block_count", {1, kMaxLayers}));
  const bool is_rms = norm == backend::NormKind::kRms;
  CANDOR_ASSIGN(const double epsilon,
                hparams.require_positive(is_rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"));
  const bool has_experts_alone = !hparams.has("feed_forward_length") && hparams.has("expert_feed_forward_length");
  CANDOR_ASSIGN(const auto ffn_dims,
                hparams.per_layer(has_experts_alone ? "expert_feed_forward_length" : "feed_forward_length", n_layers,
                                  {least_ffn, kMaxWidth}));
  BlockSpec block;
  block.norm = {norm, static_cast<float>(epsilon)};
  CANDOR_ASSIGN(block.attn, read_attn(hparams, spec.dim, n_layers));
  for (const int32_t ffn_dim : ffn_dims) {
    block.ffn.ffn_dim = ffn_dim;
    spec.blocks.push_back(block);
  }
  spec.final_norm = block.norm;
  CANDOR_ASSIGN(const auto has_no_head, formats::meta_bool(hparams.file(), kHasNoHead));
  CANDOR_ASSIGN(const auto is_causal, formats::meta_bool(hparams.file(), hparams.key("attention.causal")));
  spec.is_bidirectional = !is_causal.value_or(true);
  spec.head.is_absent = has_no_head.value_or(false) || spec.is_bidirectional;
  spec.head.tied = !spec.head.is_absent && hparams.file().find("output.weight") == nullptr;
  return spec;
}

void write_norm_epsilon(const ArchSpec& spec, const char* key, nlohmann::ordered_json& config) {
  config[key] = shortest_decimal(spec.final_norm.epsilon);
}

Result<backend::MoeSpec> read_moe(const Hparams& hparams, bool has_shared) {
  backend::MoeSpec moe;
  CANDOR_ASSIGN(moe.n_experts, hparams.require_int("expert_count", {1, kMaxExperts}));
  CANDOR_ASSIGN(moe.n_used, hparams.require_int("expert_used_count", {1, std::min(moe.n_experts, kMaxExpertsUsed)}));
  CANDOR_ASSIGN(const auto normalise, formats::meta_bool(hparams.file(), hparams.key("expert_weights_norm")));
  moe.renormalise = normalise.value_or(true);
  CANDOR_TRY(hparams.refuse_unless_zero({"expert_gating_func", "leading_dense_block_count"}));
  if (!has_shared) {
    CANDOR_TRY(hparams.refuse_unless_zero({"expert_shared_count", "expert_shared_feed_forward_length"}));
  }
  return moe;
}

Result<void> add_experts_and_shared(const Hparams& hparams, ArchSpec& spec) {
  CANDOR_ASSIGN(const backend::MoeSpec moe, read_moe(hparams, true));
  CANDOR_ASSIGN(const int32_t ffn_dim, hparams.require_int("expert_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const int32_t shared_dim, hparams.require_int("expert_shared_feed_forward_length", {1, kMaxWidth}));
  CANDOR_ASSIGN(const std::vector<bool> is_dense, read_dense_blocks(hparams, spec.blocks.size()));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (is_dense[layer]) continue;
    FfnSpec& ffn = spec.blocks[layer].ffn;
    ffn.ffn_dim = ffn_dim;
    ffn.moe = moe;
    ffn.shared_dim = shared_dim;
  }
  return {};
}

namespace {

constexpr const char* kDenseKey = "dense_layers";

}  // namespace

Result<std::vector<bool>> read_dense_blocks(const Hparams& hparams, size_t n_layers) {
  const formats::MetaValue* value = hparams.file().meta(hparams.key(kDenseKey));
  if (value == nullptr) return std::vector<bool>(n_layers, false);
  const auto* array = std::get_if<formats::MetaArray>(value);
  const auto* flags = array == nullptr ? nullptr : std::get_if<std::vector<bool>>(array);
  if (flags != nullptr && flags->size() >= n_layers)
    return std::vector<bool>(flags->begin(), flags->begin() + static_cast<std::ptrdiff_t>(n_layers));
  return fail(ErrorKind::kInvalidInput, fmt::format("metadata key \"{}\": expected {} flags, one for each block",
                                                    hparams.key(kDenseKey), n_layers));
}

Result<void> read_hub_dense_blocks(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  CANDOR_ASSIGN(const uint64_t step, hub_count(config, "decoder_sparse_step"));
  CANDOR_ASSIGN(const uint64_t n_layers, hub_count(config, "num_hidden_layers"));
  const nlohmann::json& dense = config["mlp_only_layers"];
  if (step == 0) return config.bad("decoder_sparse_step", config["decoder_sparse_step"], "1 or more");
  if (!dense.is_null() && !dense.is_array()) return config.bad("mlp_only_layers", dense, "a list of blocks");
  if (n_layers > static_cast<uint64_t>(kMaxLayers)) return {};  // refused with the sizes
  std::vector<bool> flags;
  for (uint64_t layer = 0; layer < n_layers; ++layer) {
    const bool is_listed = std::ranges::find(dense, nlohmann::json(layer)) != dense.end();
    flags.push_back(is_listed || (layer + 1) % step != 0);
  }
  if (std::ranges::find(flags, true) == flags.end()) return {};
  metadata.add(fmt::format("{}.{}", prefix, kDenseKey), formats::MetaArray(std::move(flags)));
  return {};
}

void write_hub_dense_blocks(const ArchSpec& spec, nlohmann::ordered_json& config) {
  auto dense = nlohmann::ordered_json::array();
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    const FfnSpec& ffn = spec.blocks[layer].ffn;
    if (!ffn.is_moe()) {
      dense.push_back(layer);
      config["intermediate_size"] = ffn.ffn_dim;
    }
  }
  config["decoder_sparse_step"] = 1;
  config["mlp_only_layers"] = std::move(dense);
}

Result<void> drop_windows(const Hparams& hparams, ArchSpec& spec) {
  if (!hparams.has("attention.sliding_window_pattern")) return {};
  const auto n_layers = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const std::vector<bool> is_windowed, read_window_pattern(hparams, n_layers, 1));
  for (size_t layer = 0; layer < spec.blocks.size(); ++layer) {
    if (!is_windowed[layer]) spec.blocks[layer].attn.window_tokens = 0;
  }
  return {};
}

Result<void> leave_prediction(const Hparams& hparams, ArchSpec& spec) {
  const auto n_blocks = static_cast<int32_t>(spec.blocks.size());
  CANDOR_ASSIGN(const int32_t n_stated, hparams.int_or("nextn_predict_layers", 0, {0, n_blocks - 1}));
  spec.blocks.resize(static_cast<size_t>(n_blocks - n_stated));
  constexpr std::string_view kStem = "blk.";
  for (const TensorView& tensor : hparams.file().tensors()) {
    int32_t layer = -1;
    if (!tensor.name.starts_with(kStem)) continue;
    std::from_chars(tensor.name.data() + kStem.size(), tensor.name.data() + tensor.name.size(), layer);
    if (layer >= n_blocks - n_stated && layer < n_blocks) spec.n_prediction_blocks = n_stated;
  }
  return {};
}

Result<std::vector<bool>> read_window_pattern(const Hparams& hparams, int32_t n_layers, int32_t family_pattern) {
  const std::string key = hparams.key("attention.sliding_window_pattern");
  const formats::MetaValue* value = hparams.file().meta(key);
  const auto* array = value == nullptr ? nullptr : std::get_if<formats::MetaArray>(value);
  if (array != nullptr) {
    const auto* flags = std::get_if<std::vector<bool>>(array);
    const auto n_flags = static_cast<size_t>(n_layers);
    if (flags != nullptr && flags->size() >= n_flags)
      return std::vector<bool>(flags->begin(), flags->begin() + n_layers);
    return fail(ErrorKind::kInvalidInput,
                fmt::format("metadata key \"{}\": expected {} flags, one for each block", key, n_layers));
  }
  CANDOR_ASSIGN(const int32_t pattern,
                hparams.int_or("attention.sliding_window_pattern", family_pattern, {1, kMaxLayers}));
  std::vector<bool> flags;
  flags.reserve(static_cast<size_t>(n_layers));
  for (int32_t layer = 0; layer < n_layers; ++layer) flags.push_back((layer + 1) % pattern != 0);
  return flags;
}

Result<void> read_hub_sections(const HubConfig& config, std::string_view prefix, formats::MetaList& metadata) {
  const nlohmann::json sections = config.rope().value("mrope_section", nlohmann::json());
  if (sections.is_null()) return {};
  std::vector<int64_t> numbers;
  for (const nlohmann::json& number : sections) {
    if (number.is_number_integer()) numbers.push_back(number.get<int64_t>());
  }
  if (!sections.is_array() || numbers.size() != 3) {
    return config.bad("rope_parameters", config.rope(), "three whole numbers as \"mrope_section\"");
  }
  numbers.push_back(0);  // GGUF files have a place for a fourth axis
  metadata.add(std::string(prefix) + ".rope.dimension_sections", formats::MetaArray(std::move(numbers)));
  return {};
}

}  // namespace candor::model
