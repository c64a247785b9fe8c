// tools and tool_choice. A choice that must be a call is enforced by a schema: the answer is then one JSON object with
// "name" and "parameters", whatever form the model would have chosen.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/openai/api_request.h"

namespace candor::openai {
namespace {

constexpr size_t kMaxTools = 128;

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

// The name in {"type": "function", "function": {"name": ...}}.
std::optional<std::string> named_tool(const Json& choice) {
  const auto function = choice.is_object() ? choice.find("function") : choice.end();
  if (!choice.is_object() || function == choice.end() || !function->is_object()) return std::nullopt;
  const auto name = function->find("name");
  return name != function->end() && name->is_string() ? std::optional(name->get<std::string>()) : std::nullopt;
}

// Functions and function_call, as they were asked for before there were tools, in the form of tools and tool_choice.
struct ToolWishes {
  std::optional<Json> tools{};
  std::optional<Json> choice{};
};

ToolWishes read_legacy(Fields& fields) {
  ToolWishes wishes;
  const Json* functions = fields.array("functions");
  const Json* call = fields.raw("function_call");
  if (functions != nullptr) {
    wishes.tools = Json::array();
    for (const Json& function : *functions) wishes.tools->push_back({{"type", "function"}, {"function", function}});
  }
  if (call != nullptr && call->is_object()) {
    wishes.choice = Json{{"type", "function"}, {"function", *call}};
  } else if (call != nullptr) {
    wishes.choice = *call;
  }
  return wishes;
}

ToolWishes read_wishes(Fields& fields, ApiRequest& result) {
  ToolWishes wishes = read_legacy(fields);
  const Json* tools = fields.array("tools");
  const Json* choice = fields.raw("tool_choice");
  result.as_functions = wishes.tools.has_value();
  if (wishes.tools && tools != nullptr) fields.refuse("functions", "functions come beside tools, expected one of them");
  if (tools != nullptr) wishes.tools = *tools;
  if (choice != nullptr) wishes.choice = *choice;
  return wishes;
}

// {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}: the others are as if they were not
// there. False where it is not well formed.
bool keep_allowed(Fields& fields, ToolWishes& wishes) {
  const auto fails = [&fields](const char* words) { return fields.refuse("tool_choice", words), false; };
  const auto inner = wishes.choice->find("allowed_tools");
  const Json& allowed = inner != wishes.choice->end() && inner->is_object() ? *inner : *wishes.choice;
  const auto mode = allowed.find("mode");
  const auto list = allowed.find("tools");
  if (mode == allowed.end() || (*mode != "auto" && *mode != "required"))
    return fails("tool_choice.allowed_tools.mode is not auto or required");
  if (list == allowed.end() || !list->is_array() || list->empty())
    return fails("tool_choice.allowed_tools.tools is not an array of tools");
  if (list->size() > kMaxTools) return fails("tool_choice.allowed_tools.tools has more elements than tools may have");
  std::vector<std::string_view> names;
  for (const Json& tool : *wishes.tools) names.push_back(tool["function"]["name"].get_ref<const std::string&>());
  Json kept = Json::array();
  for (const Json& one : *list) {
    const auto name = named_tool(one);
    const auto found = name ? std::ranges::find(names, *name) : names.end();
    if (found == names.end()) return fails("tool_choice.allowed_tools.tools names a tool that is not in tools");
    kept.push_back((*wishes.tools)[static_cast<size_t>(found - names.begin())]);
  }
  const Json word = *mode;
  wishes.tools = std::move(kept);
  wishes.choice = word;
  return true;
}

bool check_tools(Fields& fields, const Json& tools) {
  if (tools.size() > kMaxTools) {
    fields.refuse("tools", fmt::format("tools has {} elements, expected at most {}", tools.size(), kMaxTools));
    return false;
  }
  for (size_t i = 0; i < tools.size(); ++i) {
    if (const std::string fault = fault_of(tools[i]); !fault.empty()) {
      fields.refuse("tools", fmt::format("tools[{}] {}", i, fault));
      return false;
    }
  }
  return true;
}

void force_call(Fields& fields, const Json& tools, const std::optional<std::string>& name, ApiRequest& result) {
  Json schemas = Json::array();
  for (const Json& tool : tools) {
    if (!name || tool["function"]["name"] == *name) schemas.push_back(call_schema(tool));
  }
  if (schemas.empty()) return fields.refuse("tool_choice", "tool_choice names a tool that is not in tools");
  result.must_call = true;
  result.forced_call = ConstraintSpec{.kind = GrammarKind::kJsonSchema,
                                      .source = to_text(schemas.size() == 1 ? schemas[0] : Json{{"anyOf", schemas}})};
}

}  // namespace

void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result) {
  ToolWishes wishes = read_wishes(fields, result);
  result.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true) && !result.as_functions;
  const bool has_tools = wishes.tools && !wishes.tools->empty();
  if (has_tools && !check_tools(fields, *wishes.tools)) return;
  const auto is_allowed_list = [](const Json& choice) {
    return choice.is_object() && choice.contains("type") && choice["type"] == "allowed_tools";
  };
  if (has_tools && wishes.choice && is_allowed_list(*wishes.choice) && !keep_allowed(fields, wishes)) return;
  const std::string word = wishes.choice && wishes.choice->is_string() ? wishes.choice->get<std::string>() : "";
  if (!wishes.choice || word == "auto" || word == "none") {
    result.has_tools = has_tools && word != "none";
  } else if (!has_tools) {
    return fields.refuse("tool_choice", "tool_choice asks for a call, and there are no tools");
  } else if (const auto name = named_tool(*wishes.choice); name || word == "required") {
    result.has_tools = true;
    force_call(fields, *wishes.tools, name, result);
  } else {
    return fields.refuse("tool_choice", fmt::format("tool_choice is {}, expected none, auto, required, a named "
                                                    "function or allowed_tools",
                                                    shown(*wishes.choice)));
  }
  if (result.has_tools) chat.tools_json = to_text(*wishes.tools);
}

}  // namespace candor::openai
