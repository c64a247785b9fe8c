#include "model/hub/hub_outer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace candor::model {
namespace {

using nlohmann::json;

struct Stem {
  std::string_view there;
  std::string_view here;
};
constexpr Stem kStems[] = {{"model.language_model.", "model."},
                           {"language_model.model.", "model."},
                           {"language_model.lm_head.", "lm_head."}};

}  // namespace

Result<json> text_config_of(const json& config, std::string_view name) {
  const auto text = config.find("text_config");
  if (text == config.end() || !text->is_object()) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: \"text_config\" is absent, which describes the text", name));
  }
  json own = *text;
  for (const char* key : {"tie_word_embeddings", "quantization_config"}) {
    const auto value = config.find(key);
    if (value != config.end() && !value->is_null()) own[key] = *value;
  }
  return own;
}

std::optional<std::string> name_in_text(std::string_view name, const HubOuter& outer) {
  const auto begins = [name](std::string_view stem) { return name.starts_with(stem); };
  if (std::ranges::any_of(outer.left_out, begins)) return std::nullopt;
  for (const Stem& stem : kStems) {
    if (begins(stem.there)) return std::string(stem.here).append(name.substr(stem.there.size()));
  }
  return std::string(name);
}

}  // namespace candor::model
