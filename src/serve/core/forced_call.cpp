// A choice that must be a call is enforced: by the grammar of the model's own form (request_terms), or, where it has
// none that can hold these tools, by a schema: one JSON object with "name" and "parameters".

#include <cstddef>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/json_body.h"
#include "text/chat/forms/call_grammar.h"

namespace candor::serve {
namespace {

// Why it is no tool; "" if it is one.
std::string fault_of(const Json& tool) {
  const auto function = tool.is_object() ? tool.find("function") : tool.end();
  if (!tool.is_object() || function == tool.end() || !function->is_object()) return "has no function";
  const auto name = function->find("name");
  if (name == function->end() || !name->is_string() || name->get_ref<const std::string&>().empty())
    return "has no function.name";
  const auto parameters = function->find("parameters");
  if (parameters == function->end() || parameters->is_null()) return {};
  if (!parameters->is_object()) return "has function.parameters that are no schema";
  const auto type = parameters->find("type");
  return type != parameters->end() && *type != "object" ? "has function.parameters of a type other than object" : "";
}

Json call_schema(const Json& tool) {
  const Json& function = tool["function"];
  const auto given = function.find("parameters");
  const bool is_given = given != function.end() && given->is_object();
  const Json parameters = is_given ? *given : Json{{"type", "object"}, {"additionalProperties", false}};
  return {{"type", "object"},
          {"properties", {{"name", {{"const", function["name"]}}}, {"parameters", parameters}}},
          {"required", {"name", "parameters"}},
          {"additionalProperties", false}};
}

}  // namespace

std::string fault_of_tools(const Json& tools) {
  if (tools.size() > kMaxTools)
    return fmt::format("tools has {} elements, expected at most {}", tools.size(), kMaxTools);
  for (size_t i = 0; i < tools.size(); ++i) {
    if (const std::string fault = fault_of(tools[i]); !fault.empty()) return fmt::format("tools[{}] {}", i, fault);
  }
  return {};
}

bool force_call(const Json& tools, const std::optional<std::string>& name, ApiRequest& result) {
  Json schemas = Json::array();
  for (const Json& tool : tools) {
    if (!name || tool["function"]["name"] == *name) schemas.push_back(call_schema(tool));
  }
  if (schemas.empty()) return false;
  result.must_call = true;
  result.wish =
      text::CallWish{.tools_json = to_text(tools), .name = name, .may_repeat = result.wants_several_calls && !name};
  result.forced_call = ConstraintSpec{.kind = GrammarKind::kJsonSchema,
                                      .source = to_text(schemas.size() == 1 ? schemas[0] : Json{{"anyOf", schemas}})};
  return true;
}

}  // namespace candor::serve
