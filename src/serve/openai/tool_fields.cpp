// tools and tool_choice.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

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

ToolWishes read_wishes(Fields& fields, ReplyOptions& reply) {
  ToolWishes wishes = read_legacy(fields);
  const Json* tools = fields.array("tools");
  const Json* choice = fields.raw("tool_choice");
  reply.as_functions = wishes.tools.has_value();
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
  Json word = *mode;
  wishes.tools = std::move(kept);
  wishes.choice = std::move(word);
  return true;
}

}  // namespace

void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result, ReplyOptions& reply) {
  ToolWishes wishes = read_wishes(fields, reply);
  const auto parallel = fields.boolean("parallel_tool_calls");
  result.wants_several_calls = parallel.value_or(false) && !reply.as_functions;
  result.parallel_tool_calls = parallel.value_or(true) && !reply.as_functions;
  const bool has_tools = wishes.tools && !wishes.tools->empty();
  if (has_tools) {
    if (std::string fault = fault_of_tools(*wishes.tools); !fault.empty())
      return fields.refuse("tools", std::move(fault));
  }
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
    if (!force_call(*wishes.tools, name, result))
      fields.refuse("tool_choice", "tool_choice names a tool that is not in tools");
  } else {
    return fields.refuse("tool_choice", fmt::format("tool_choice is {}, expected none, auto, required, a named "
                                                    "function or allowed_tools",
                                                    shown(*wishes.choice)));
  }
  if (result.has_tools) chat.tools_json = to_text(*wishes.tools);
}

}  // namespace candor::serve::openai
