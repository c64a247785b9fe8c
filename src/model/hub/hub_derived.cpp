#include "model/hub/hub_derived.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "model/hparams.h"

namespace candor::model {
namespace {

using nlohmann::json;

const json& value_of(const json& config, const char* key) {
  static const json kNull;
  const auto at = config.find(key);
  return at == config.end() ? kNull : *at;
}

std::optional<uint64_t> count_of(const json& config, const char* key, int64_t most = kMaxWidth) {
  const json& value = value_of(config, key);
  if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(most)) return std::nullopt;
  return value.get<uint64_t>();
}

bool is_set(const json& config, const char* key) {
  return value_of(config, key) == true;
}

// A list of what kind(block) gives; null where the number of blocks is none.
template <class Kind>
json for_blocks(const json& config, Kind&& kind, const char* key = "num_hidden_layers") {
  const std::optional<uint64_t> n_blocks = count_of(config, key, kMaxLayers);
  if (!n_blocks) return {};
  json list = json::array();
  for (uint64_t block = 0; block < *n_blocks; ++block) list.push_back(kind(block));
  return list;
}

constexpr const char* kFullAttention = "full_attention";
constexpr const char* kSliding = "sliding_attention";

// Every n-th block is of the kind, the others of another.
json every(const json& config, uint64_t n, const char* kind, const char* others) {
  return for_blocks(config, [&](uint64_t block) { return n > 0 && (block + 1) % n == 0 ? kind : others; });
}
json every_second(const json& config) {
  return every(config, 2, kFullAttention, kSliding);
}
json every_fourth(const json& config) {
  return every(config, 4, kFullAttention, kSliding);
}
json every_sixth(const json& config) {
  return every(config, 6, kFullAttention, kSliding);
}

// "sliding_window_pattern", which `usual` stands for.
json by_pattern(const json& config, uint64_t usual) {
  const bool is_stated = !value_of(config, "sliding_window_pattern").is_null();
  const std::optional<uint64_t> pattern = count_of(config, "sliding_window_pattern", kMaxLayers);
  if (is_stated && pattern.value_or(0) == 0) return {};
  return every(config, pattern.value_or(usual), kFullAttention, kSliding);
}
json gemma3_kinds(const json& config) {
  return by_pattern(config, 6);
}
json cohere2_kinds(const json& config) {
  return by_pattern(config, 4);
}
// Without a window the library divides by a pattern of 0.
json exaone_kinds(const json& config) {
  return value_of(config, "sliding_window").is_null() ? json() : by_pattern(config, 4);
}

json afmoe_kinds(const json& config) {
  const std::optional<uint64_t> interval = count_of(config, "global_attn_every_n_layers", kMaxLayers);
  return interval.value_or(0) == 0 ? json() : every(config, *interval, kFullAttention, kSliding);
}
json modernbert_kinds(const json& config) {
  const std::optional<uint64_t> every = count_of(config, "global_attn_every_n_layers", kMaxLayers);
  const uint64_t n = every.value_or(3);
  return n == 0 ? json()
                : for_blocks(config, [n](uint64_t block) { return block % n == 0 ? kFullAttention : kSliding; });
}
json cwm_kinds(const json& config) {
  return for_blocks(config, [](uint64_t block) { return block % 4 == 0 ? kFullAttention : kSliding; });
}
// Whatever the number of blocks, which has to fit.
json gpt_neo_kinds(const json&) {
  return json::parse(R"([[["global", "local"], 12]])");
}

// The blocks from max_window_layers on have the window.
json last_windowed(const json& config) {
  const bool has_window = !value_of(config, "sliding_window").is_null();
  const bool is_used = !config.contains("use_sliding_window") || is_set(config, "use_sliding_window");
  const std::optional<uint64_t> first = count_of(config, "max_window_layers");
  if (has_window && is_used && !first) return {};
  return for_blocks(config, [&](uint64_t block) { return has_window && is_used && block >= *first ? kSliding : kFullAttention; });
}

// Every second block before max_window_layers has it.
json qwen2_moe_kinds(const json& config) {
  const std::optional<uint64_t> end = count_of(config, "max_window_layers");
  const bool is_used = is_set(config, "use_sliding_window");
  if (is_used && !end) return {};
  return for_blocks(config,
                    [&](uint64_t block) { return is_used && (block + 1) % 2 != 0 && block < *end ? kSliding : kFullAttention; });
}

json ministral_kinds(const json& config) {
  const bool has_window = !value_of(config, "sliding_window").is_null();
  return for_blocks(config, [&](uint64_t) { return has_window ? kSliding : kFullAttention; });
}

// 1: the block rotates.
json rotated_blocks(const json& config) {
  const std::optional<uint64_t> interval = count_of(config, "no_rope_layer_interval", kMaxLayers);
  if (interval.value_or(0) == 0) return {};
  return for_blocks(config, [&](uint64_t block) { return (block + 1) % *interval != 0 ? 1 : 0; });
}
bool rotates(const json& list, uint64_t block) {
  return !list.is_array() || block >= list.size() || (list[block] != 0 && list[block] != false);
}
json smollm3_kinds(const json& config) {
  const json& rotated = value_of(config, "no_rope_layers");
  const bool has_window = is_set(config, "use_sliding_window") && !value_of(config, "sliding_window").is_null();
  return for_blocks(config, [&](uint64_t block) { return has_window && !rotates(rotated, block) ? kSliding : kFullAttention; });
}
json llama4_kinds(const json& config) {
  const json& rotated = value_of(config, "no_rope_layers");
  return for_blocks(config, [&](uint64_t block) { return rotates(rotated, block) ? "chunked_attention" : kFullAttention; });
}
json llama4_sparse_blocks(const json& config) {
  const std::optional<uint64_t> step = count_of(config, "interleave_moe_layer_step", kMaxLayers);
  const std::optional<uint64_t> n_blocks = count_of(config, "num_hidden_layers", kMaxLayers);
  if (step.value_or(0) == 0 || !n_blocks) return {};
  json list = json::array();
  for (uint64_t block = *step - 1; block < *n_blocks; block += *step) list.push_back(block);
  return list;
}

json qwen3_next_kinds(const json& config) {
  const bool is_stated = !value_of(config, "full_attention_interval").is_null();
  const std::optional<uint64_t> interval = count_of(config, "full_attention_interval", kMaxLayers);
  if (is_stated && interval.value_or(0) == 0) return {};
  return every(config, interval.value_or(4), kFullAttention, "linear_attention");
}
json olmo_hybrid_kinds(const json& config) {
  json kinds = every(config, 4, kFullAttention, "linear_attention");
  if (kinds.is_array() && !kinds.empty() && std::ranges::find(kinds, json(kFullAttention)) == kinds.end()) kinds.back() = kFullAttention;
  return kinds;
}
json gemma4_kinds(const json& config) {
  json kinds = every_sixth(config);
  if (kinds.is_array() && !kinds.empty()) kinds.back() = kFullAttention;
  return kinds;
}
json kimi_linear_kinds(const json& config) {
  if (config.contains("linear_attn_config")) return {};  // which lists them
  return for_blocks(config, [](uint64_t block) { return block > 0 && block % 4 == 0 ? kFullAttention : "linear_attention"; });
}
json all_recurrent(const json& config) {
  return for_blocks(config, [](uint64_t) { return "linear_attention"; });
}
json lfm2_kinds(const json& config) {
  const json& attending = value_of(config, "full_attn_idxs");
  return for_blocks(config, [&](uint64_t block) {
    return attending.is_null() || std::ranges::find(attending, json(block)) != attending.end() ? kFullAttention : "conv";
  });
}
json bamba_kinds(const json& config) {
  const json& attending = value_of(config, "attn_layer_indices");
  return for_blocks(config, [&](uint64_t block) {
    const bool is_listed = attending.is_array() && std::ranges::find(attending, json(block)) != attending.end();
    return is_listed ? "attention" : "mamba";
  });
}

json first_dense(const json& config) {
  return for_blocks(config, [](uint64_t block) { return block == 0 ? "dense" : "sparse"; });
}
// "first_k_dense_replace" blocks without experts.
json kinds_of_ffn(const json& config) {
  const uint64_t n_dense = count_of(config, "first_k_dense_replace", kMaxLayers).value_or(1);
  return for_blocks(config, [&](uint64_t block) { return block < n_dense ? "dense" : "sparse"; });
}

json quotient(const json& config, const char* of, const char* by, uint64_t times = 1) {
  const std::optional<uint64_t> number = count_of(config, of);
  const std::optional<uint64_t> divisor = count_of(config, by);
  if (!number || divisor.value_or(0) == 0) return {};
  return *number * times / *divisor;
}
json width_of_heads(const json& config) {
  return quotient(config, "hidden_size", "num_attention_heads");
}
json width_of_states(const json& config) {
  const std::optional<uint64_t> expand = count_of(config, "mamba_expand", 1024);
  const bool has_own = !value_of(config, "mamba_d_ssm").is_null();
  return has_own ? quotient(config, "mamba_d_ssm", "mamba_n_heads")
                 : quotient(config, "hidden_size", "mamba_n_heads", expand.value_or(0));
}
json as_heads(const json& config) {
  return value_of(config, "num_attention_heads");
}
json key_width_of_delta(const json& config) {
  const std::optional<uint64_t> dim = count_of(config, "hidden_size");
  const std::optional<uint64_t> n_heads = count_of(config, "linear_num_key_heads");
  if (!dim || n_heads.value_or(0) == 0) return {};
  return static_cast<uint64_t>(0.75 * static_cast<double>(*dim) / static_cast<double>(*n_heads));
}
json value_width_of_delta(const json& config) {
  const std::optional<uint64_t> width = count_of(config, "linear_key_head_dim");
  return width ? json(2 * *width) : json();
}

struct Rule {
  std::string_view model_type;  // "": every one that knows the key
  const char* key;
  json (*compute)(const json& config);
};
// In this order: later rules see what earlier ones gave.
constexpr Rule kRules[] = {
    {"", "num_key_value_heads", as_heads},
    {"", "num_kv_heads", as_heads},
    {"", "head_dim", width_of_heads},
    {"", "mamba_d_head", width_of_states},
    {"", "no_rope_layers", rotated_blocks},
    {"afmoe", "layer_types", afmoe_kinds},
    {"modernbert", "layer_types", modernbert_kinds},
    {"bamba", "layers_block_type", bamba_kinds},
    {"cohere2", "layer_types", cohere2_kinds},
    {"cwm", "layer_types", cwm_kinds},
    {"dots1", "layer_types", last_windowed},
    {"exaone4", "layer_types", exaone_kinds},
    {"exaone_moe", "layer_types", exaone_kinds},
    {"exaone_moe", "mlp_layer_types", kinds_of_ffn},
    {"gemma2", "layer_types", every_second},
    {"gemma3_text", "layer_types", gemma3_kinds},
    {"gemma4_text", "layer_types", gemma4_kinds},
    {"glm4_moe_lite", "mlp_layer_types", first_dense},
    {"gpt_oss", "layer_types", every_second},
    {"granitemoehybrid", "layer_types", all_recurrent},
    {"kimi_linear", "layer_types", kimi_linear_kinds},
    {"kimi_linear", "mlp_layer_types", kinds_of_ffn},
    {"lfm2", "layer_types", lfm2_kinds},
    {"llama4_text", "layer_types", llama4_kinds},
    {"llama4_text", "moe_layers", llama4_sparse_blocks},
    {"ministral", "layer_types", ministral_kinds},
    {"olmo3", "layer_types", every_fourth},
    {"olmo_hybrid", "layer_types", olmo_hybrid_kinds},
    {"olmo_hybrid", "linear_num_key_heads", as_heads},
    {"olmo_hybrid", "linear_num_value_heads", as_heads},
    {"olmo_hybrid", "linear_key_head_dim", key_width_of_delta},
    {"olmo_hybrid", "linear_value_head_dim", value_width_of_delta},
    {"qwen2", "layer_types", last_windowed},
    {"mimo", "layer_types", last_windowed},
    {"qwen2_moe", "layer_types", qwen2_moe_kinds},
    {"qwen3", "layer_types", last_windowed},
    {"qwen3_5_moe_text", "layer_types", qwen3_next_kinds},
    {"qwen3_5_text", "layer_types", qwen3_next_kinds},
    {"qwen3_next", "layer_types", qwen3_next_kinds},
    {"smollm3", "layer_types", smollm3_kinds},
    {"vaultgemma", "layer_types", every_second},
    {"gpt_neo", "attention_types", gpt_neo_kinds},
};

// What the rules compute from and nobody else reads.
constexpr std::string_view kSources[] = {
    "attn_layer_indices",     "first_k_dense_replace",  "full_attention_interval", "full_attn_idxs",
    "global_attn_every_n_layers",
    "interleave_moe_layer_step", "linear_attn_config",  "mamba_expand",            "max_window_layers",
    "no_rope_layer_interval", "sliding_window_pattern", "use_sliding_window",
};

}  // namespace

std::string_view missing_setting(std::string_view model_type, const json& config) {
  struct Need {
    std::string_view model_type;
    const char* key;
  };
  constexpr Need kNeeds[] = {{"exaone4", "layer_types"},   {"exaone_moe", "layer_types"}, {"hunyuan_v1_moe", "head_dim"},
                             {"lfm2_moe", "layer_types"},  {"ministral", "head_dim"},     {"ministral", "sliding_window"}};
  for (const Need& need : kNeeds) {
    if (need.model_type == model_type && value_of(config, need.key).is_null()) return need.key;
  }
  return {};
}

bool is_derived_from(std::string_view key) {
  return std::ranges::find(kSources, key) != std::end(kSources);
}

void derive_settings(std::string_view model_type, json& config) {
  for (const Rule& rule : kRules) {
    const bool is_needed = std::string_view(rule.key) == "head_dim" &&
                           (model_type == "hunyuan_v1_moe" || model_type == "ministral");
    if (is_needed) continue;  // the library computes none
    if (!rule.model_type.empty() && rule.model_type != model_type) continue;
    const auto at = config.find(rule.key);
    const bool is_auto = at != config.end() && *at == "auto";
    if (at == config.end() || (!at->is_null() && !is_auto)) continue;
    json value = rule.compute(config);
    if (!value.is_null()) config[rule.key] = std::move(value);
  }
}

}  // namespace candor::model
