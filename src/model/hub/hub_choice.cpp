#include "model/hub/hub_choice.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "formats/quote.h"
#include "model/families/missing.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

std::string supported_types() {
  std::string names;
  for (const Family& family : families()) {
    std::string_view last;
    for (const HubForm& form : family.hub) {
      if (form.model_type != last) names += fmt::format("{}{}", names.empty() ? "" : ", ", form.model_type);
      last = form.model_type;
      for (const HubOuter& outer : form.outer) names += fmt::format(", {}", outer.model_type);
    }
  }
  return names;
}

std::string type_of(const json& config) {
  const json type = config.is_object() ? config.value("model_type", json()) : json();
  return type.is_string() ? type.get<std::string>() : std::string();
}

}  // namespace

Result<FamilyForm> choose_form(const json& config, std::string_view name) {
  const std::string type = type_of(config);
  const std::string text_type = config.is_object() ? type_of(config.value("text_config", json())) : std::string();
  FamilyForm chosen;  // of several forms of one type the last, which knows every name
  for (const Family& family : families()) {
    for (const HubForm& form : family.hub) {
      if (form.model_type == type && (form.reads == nullptr || form.reads(config))) chosen = {&family, &form};
      for (const HubOuter& outer : form.outer) {
        const std::string_view text = outer.text_type.empty() ? form.model_type : outer.text_type;
        if (outer.model_type == type && text == text_type) chosen = {&family, &form, &outer};
      }
    }
  }
  if (chosen.form != nullptr) return chosen;
  if (const std::string_view need = need_of(type); !need.empty()) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: model_type {} is not supported{}", name, in_quotes(type), need));
  }
  const std::string of_text = text_type.empty() ? "" : fmt::format(" with text of {}", in_quotes(text_type));
  return fail(ErrorKind::kUnsupported, fmt::format("{}: model_type {}{} is not supported (supported: {})",
                                                   name, in_quotes(type), of_text,
                                                   supported_types()));
}

}  // namespace candor::model
