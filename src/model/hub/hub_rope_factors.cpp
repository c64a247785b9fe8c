#include "model/hub/hub_rope_factors.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "backend/op_specs.h"
#include "model/hparams.h"

namespace candor::model {
namespace {

using nlohmann::json;

constexpr std::string_view kFrequencies = "rope_freqs.weight";

bool is_width(double width) {
  return width >= 2.0 && width <= static_cast<double>(kMaxWidth);
}

// Of blocks that see everything, whose heads may have a width of their own.
Result<std::vector<float>> proportional_factors(const HubConfig& config, const json& rope) {
  constexpr float kEndless = 1e30f;
  CANDOR_ASSIGN(std::optional<double> width, hub_number(config, "global_head_dim"));
  if (const json* blocks = config.find("per_layer_config"); !width && blocks != nullptr && blocks->is_object()) {
    for (const json& block : *blocks) {
      if (!block.is_object() || !block.contains("head_dim")) continue;
      CANDOR_ASSIGN(width, hub_number(block, "head_dim"));
    }
  }
  if (!width) {
    CANDOR_ASSIGN(width, hub_number(config, "head_dim"));
  }
  CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config, rope, "partial_rotary_factor"));
  const double share = stated.value_or(1.0);
  if (!is_width(width.value_or(0.0))) return std::vector<float>{};  // refused with the sizes
  if (!(share > 0.0 && share <= 1.0)) return config.bad("partial_rotary_factor", share, "a share of 1");
  std::vector<float> factors(static_cast<size_t>(*width / 2.0), kEndless);
  std::fill_n(factors.begin(), std::min(factors.size(), static_cast<size_t>(share * *width / 2.0)), 1.0f);
  return factors;
}

Result<double> width_of_heads(const HubConfig& config) {
  CANDOR_ASSIGN(const std::optional<double> own, hub_number(config, "head_dim"));
  if (own) return *own;
  CANDOR_ASSIGN(const std::optional<double> dim, hub_number(config, "hidden_size"));
  CANDOR_ASSIGN(const std::optional<double> heads, hub_number(config, "num_attention_heads"));
  return heads.value_or(0.0) >= 1.0 ? std::floor(dim.value_or(0.0) / *heads) : 0.0;
}

Result<std::vector<float>> llama3_factors(const HubConfig& config, const json& rope) {
  CANDOR_ASSIGN(const double width, width_of_heads(config));
  backend::RopeSpec spec;
  struct Part {
    const char* key;
    double value;
  } parts[] = {{"rope_theta", spec.base}, {"factor", 0.0}, {"low_freq_factor", 0.0}, {"high_freq_factor", 0.0},
               {"original_max_position_embeddings", 0.0}};
  for (Part& part : parts) {
    CANDOR_ASSIGN(const std::optional<double> stated, rope_number(config, rope, part.key));
    part.value = stated.value_or(part.value);
  }
  spec.base = parts[0].value;
  spec.factor = parts[1].value;
  spec.low_freq_factor = parts[2].value;
  spec.high_freq_factor = parts[3].value;
  const double original = parts[4].value;
  if (!is_width(width)) return std::vector<float>{};  // refused with the sizes
  const bool is_good = spec.base > 1.0 && spec.factor > 0.0 && spec.low_freq_factor > 0.0 &&
                       spec.high_freq_factor >= spec.low_freq_factor && original >= 1.0 &&
                       original <= static_cast<double>(kMaxPositions);
  if (!is_good) {
    return config.bad("rope_scaling", rope,
                      "a factor, low_freq_factor of at most high_freq_factor and original_max_position_embeddings");
  }
  CANDOR_ASSIGN(const std::optional<double> share, rope_number(config, rope, "partial_rotary_factor"));
  const double rotated = width * std::clamp(share.value_or(1.0), 0.0, 1.0);
  spec.n_dims = static_cast<int32_t>(rotated) / 2 * 2;
  if (spec.n_dims < 2) return config.bad("partial_rotary_factor", share.value_or(0.0), "a share of 1");
  const std::vector<double> plain = backend::rope_frequencies(spec);
  spec.original_positions = static_cast<int32_t>(original);
  spec.scaling = backend::RopeScaling::kLlama3;
  const std::vector<double> scaled = backend::rope_frequencies(spec);
  std::vector<float> factors;
  for (size_t i = 0; i < plain.size(); ++i) factors.push_back(static_cast<float>(plain[i] / scaled[i]));
  return factors;
}

Result<std::vector<float>> listed_factors(const HubConfig& config, const json& rope, const char* key) {
  std::vector<float> values;
  const json& list = rope[key];
  if (!list.is_array() || list.empty()) return config.bad(key, list, "a list of numbers");
  for (const json& value : list) {
    if (!value.is_number()) return config.bad(key, value, "a list of numbers");
    values.push_back(value.get<float>());
  }
  return values;
}

}  // namespace

Result<std::vector<RopeFactors>> rope_factors(const HubConfig& config, const HubRope& rope) {
  std::vector<RopeFactors> factors;
  const auto add = [&](std::string_view name, std::vector<float> values) {
    if (!values.empty()) factors.push_back({name, std::move(values)});
  };
  const std::string type = rope.full.value("rope_type", std::string());
  if (type == "proportional") {
    CANDOR_ASSIGN(std::vector<float> values, proportional_factors(config, rope.full));
    add(kFrequencies, std::move(values));
  }
  const bool rotates = rope.full.contains("rope_theta") && !rope.full["rope_theta"].is_null();
  if (type == "llama3" && rotates) {
    CANDOR_ASSIGN(std::vector<float> values, llama3_factors(config, rope.full));
    add(kFrequencies, std::move(values));
  }
  if (type == "longrope" || type == "su") {
    CANDOR_ASSIGN(std::vector<float> longer, listed_factors(config, rope.full, "long_factor"));
    CANDOR_ASSIGN(std::vector<float> shorter, listed_factors(config, rope.full, "short_factor"));
    add("rope_factors_long.weight", std::move(longer));
    add("rope_factors_short.weight", std::move(shorter));
  }
  return factors;
}

}  // namespace candor::model
