#pragma once
// What the `transformers` library computes from other keys of config.json where a key is absent or null: kinds of
// blocks, heads of K and V, widths of heads (the `__post_init__` of its configuration classes, in the release that
// hub_defaults.h names).

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace candor::model {

// config: with defaults. Settings that cannot be computed from what it has stay null.
void derive_settings(std::string_view model_type, nlohmann::json& config);

// A key that is null and that the library has no value for, though others of its classes do; "" where there is none.
std::string_view missing_setting(std::string_view model_type, const nlohmann::json& config);

// Whether a key counts only where others are absent, which are computed from it.
bool is_derived_from(std::string_view key);

}  // namespace candor::model
