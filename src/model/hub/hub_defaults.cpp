#include "model/hub/hub_defaults.h"

#include <algorithm>

namespace candor::model {
namespace {

// JSON.
struct DefaultsText {
  std::string_view model_type;
  std::string_view values;
  std::string_view names;
  std::string_view others;
  std::string_view rotary;
};

#include "model/hub/hub_defaults.inl"

}  // namespace

std::optional<HubDefaults> hub_defaults(std::string_view model_type) {
  const auto* row = std::ranges::find(kDefaults, model_type, &DefaultsText::model_type);
  if (row == std::end(kDefaults)) return std::nullopt;
  const auto parse = [](std::string_view text) { return nlohmann::json::parse(text); };
  return HubDefaults{parse(row->values), parse(row->names), parse(row->others), parse(row->rotary)};
}

std::string_view hub_defaults_source() {
  return kLibrary;
}

bool is_without_effect(std::string_view key) {
  return std::ranges::binary_search(kWithoutEffect, key);
}

}  // namespace candor::model
