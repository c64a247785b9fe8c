#include "serve/core/replayed_calls.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace candor::serve {

Json replayed_arguments(const Json* given, const std::string& where, const ModelForm& form,
                        std::vector<std::string>& warnings) {
  if (given == nullptr || given->is_null() || *given == "") return Json::object();
  if (given->is_object()) return *given;
  if (given->is_string()) {
    if (auto parsed = parse_body(given->get_ref<const std::string&>())) return std::move(*parsed);
  }
  warnings.push_back(where + " is no JSON object, and is given to the model as text");
  Json text = given->is_string() ? *given : Json(to_text(*given));
  if (form.takes_text_arguments) return text;
  return {{"arguments", std::move(text)}};
}

std::string repeated_id(const Json& calls) {
  std::set<std::string_view> ids;
  for (const Json& call : calls) {
    const auto id = call.find("id");
    if (id == call.end() || !id->is_string()) continue;
    const auto& name = id->get_ref<const std::string&>();
    if (!ids.insert(name).second) return name;
  }
  return {};
}

}  // namespace candor::serve
