#pragma once
// What the `transformers` library takes where a config.json leaves a key out, as data: a table by model_type, made from
// the library's configuration classes by scripts/make_hub_defaults.py (hub_defaults.inl, which names the release).

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

namespace candor::model {

struct HubDefaults {
  nlohmann::json values;  // key -> default; null where the class computes it from others, or has none
  nlohmann::json names;   // another name of a key -> the key
  nlohmann::json others;  // keys that the class reads and that have no default
  nlohmann::json rotary;  // "theta", "partial", and "default": rope_parameters where the folder has none; or null
};

// Nothing where the model_type has no row.
std::optional<HubDefaults> hub_defaults(std::string_view model_type);

// The library's name and release.
std::string_view hub_defaults_source();

// Whether a key of this name changes no logit: it is of training, of generation, or of speed.
bool is_without_effect(std::string_view key);

}  // namespace candor::model
