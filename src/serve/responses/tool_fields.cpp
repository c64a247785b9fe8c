// tools and tool_choice of POST /v1/responses. Functions come flat, in namespaces and as custom tools; chat templates
// know functions. What a provider's own machines would run is not offered here, and named.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/responses/requests.h"

namespace candor::serve::responses {
namespace {

// Types of tools that the provider of a model runs itself. A suffix, as a date, does not count.
constexpr size_t kMostTypeBytes = 40;
constexpr std::string_view kHosted[] = {"web_search",  "file_search", "code_interpreter", "computer",
                                        "mcp",         "local_shell", "image_generation", "shell",
                                        "apply_patch", "tool_search"};

bool is_hosted(std::string_view type) {
  const auto is_plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  if (type.size() > kMostTypeBytes || !std::ranges::all_of(type, is_plain)) return false;
  return std::ranges::any_of(kHosted, [&](std::string_view name) {
    return type == name || (type.starts_with(name) && type[name.size()] == '_');
  });
}

Json or_null(const Json* value) {
  return value == nullptr ? Json() : *value;
}

// A custom tool may describe its input by a grammar: nothing keeps the model to it, so that it is told.
std::string custom_description(Fields& tool, std::vector<std::string>& warnings) {
  std::string words = tool.text("description").value_or("");
  const Json* format = tool.object("format");
  if (format == nullptr) return words;
  Fields inner(*format, tool.path_of("format"));
  const std::string type = inner.text("type").value_or("text");
  if (type == "grammar") {
    const std::string syntax = inner.text("syntax").value_or("");
    const std::string definition = inner.text("definition").value_or("");
    if (definition.empty())
      inner.refuse("definition", inner.path_of("definition") + " is missing, expected the grammar");
    words += fmt::format("{}The input obeys this grammar ({}):\n{}", words.empty() ? "" : "\n", syntax, definition);
    warnings.push_back(inner.path_of("definition") + " is shown to the model, and does not bind it");
  } else if (type != "text" && !inner.fault()) {
    inner.refuse("type", fmt::format("{} is {}, expected text or grammar", inner.path_of("type"), shown(Json(type))));
  }
  if (inner.fault()) tool.refuse_with(*inner.fault());
  return words;
}

class ToolReader {
 public:
  ToolReader(Fields& fields, ToolSet& set, std::vector<std::string>& warnings)
      : fields_(fields), set_(set), warnings_(warnings) {}

  void read(const Json& value, const std::string& where) { read_one(value, where, "", ""); }

 private:
  void read_one(const Json& value, const std::string& where, const std::string& name_space, const std::string& words);
  void read_function(Fields& tool, const std::string& name_space, const std::string& words);
  void read_custom(Fields& tool, const std::string& name_space, const std::string& words);
  void read_namespace(Fields& tool);
  // False where it is refused.
  bool add(Fields& tool, OfferedTool offered);

  Fields& fields_;
  ToolSet& set_;
  std::vector<std::string>& warnings_;
  size_t n_read_ = 0;
};

// words: of the namespace, told with its first tool.
void ToolReader::read_one(const Json& value, const std::string& where, const std::string& name_space,
                          const std::string& words) {
  if (!value.is_object()) {
    return fields_.refuse(where.c_str(), fmt::format("{} is {}, expected an object", where, shown(value)));
  }
  if (++n_read_ > kMaxTools) {
    return fields_.refuse("tools",
                          fmt::format("tools has more than {} elements, those of namespaces counted", kMaxTools));
  }
  Fields tool(value, where);
  const auto type = tool.text("type");
  if (!type) {
    tool.refuse("type", where + ".type is missing, expected function, custom or namespace");
  } else if (*type == "function") {
    read_function(tool, name_space, words);
  } else if (*type == "custom") {
    read_custom(tool, name_space, words);
  } else if (*type == "namespace" && name_space.empty()) {
    read_namespace(tool);
  } else if (is_hosted(*type)) {
    if (std::ranges::find(set_.not_offered, *type) == set_.not_offered.end()) set_.not_offered.push_back(*type);
  } else {
    tool.refuse("type",
                fmt::format("{}.type is {}, expected function, custom or namespace", where, shown(Json(*type))));
  }
  if (tool.fault()) fields_.refuse_with(*tool.fault());
}

bool ToolReader::add(Fields& tool, OfferedTool offered) {
  if (tool.fault()) return false;
  if (offered.name.empty()) {
    return tool.refuse("name", tool.path_of("name") + " is missing, expected the tool's name"), false;
  }
  const auto is_same = [&](const OfferedTool& other) { return other.shown == offered.shown; };
  if (std::ranges::any_of(set_.offered, is_same)) {
    return tool.refuse("name", fmt::format("{} {} is that of a tool before it", tool.path_of("name"),
                                           shown(Json(offered.name)))),
           false;
  }
  set_.offered.push_back(std::move(offered));
  return true;
}

void ToolReader::read_function(Fields& tool, const std::string& name_space, const std::string& words) {
  const std::string name = tool.text("name").value_or("");
  const auto description = tool.text("description");
  const Json* parameters = tool.object("parameters");
  const auto strict = tool.boolean("strict");
  if (parameters != nullptr && parameters->contains("type") && (*parameters)["type"] != "object") {
    tool.refuse("parameters", tool.path_of("parameters") + ".type is not object");
  }
  if (!add(tool, {.shown = shown_name(name, name_space), .name = name, .name_space = name_space})) return;
  Json function = {{"name", set_.offered.back().shown}};
  if (description || !words.empty()) {
    function["description"] = words + (words.empty() || !description ? "" : "\n\n") + description.value_or("");
  }
  if (parameters != nullptr) function["parameters"] = *parameters;
  if (strict) function["strict"] = *strict;
  set_.shown.push_back({{"type", "function"}, {"function", std::move(function)}});
  Json echoed = {{"type", "function"},
                 {"name", name},
                 {"description", description ? Json(*description) : Json()},
                 {"parameters", or_null(parameters)},
                 {"strict", strict ? Json(*strict) : Json()}};
  if (!name_space.empty()) echoed["namespace"] = name_space;
  set_.echoed.push_back(std::move(echoed));
}

void ToolReader::read_custom(Fields& tool, const std::string& name_space, const std::string& words) {
  const std::string name = tool.text("name").value_or("");
  const std::string description = custom_description(tool, warnings_);
  if (!add(tool, {.shown = shown_name(name, name_space), .name = name, .name_space = name_space, .is_custom = true})) {
    return;
  }
  const Json parameters = {{"type", "object"},
                           {"properties", {{kCustomInput, {{"type", "string"}}}}},
                           {"required", Json::array({kCustomInput})},
                           {"additionalProperties", false}};
  set_.shown.push_back({{"type", "function"},
                        {"function",
                         {{"name", set_.offered.back().shown},
                          {"description", words + (words.empty() ? "" : "\n\n") + description},
                          {"parameters", parameters}}}});
  Json echoed = {{"type", "custom"}, {"name", name}};
  if (tool.has("description")) echoed["description"] = *tool.raw("description");
  if (tool.has("format")) echoed["format"] = *tool.raw("format");
  if (!name_space.empty()) echoed["namespace"] = name_space;
  set_.echoed.push_back(std::move(echoed));
}

void ToolReader::read_namespace(Fields& tool) {
  const std::string name = tool.text("name").value_or("");
  const std::string words = tool.text("description").value_or("");
  const Json* tools = tool.array("tools");
  if (tool.fault()) return;
  if (name.empty()) return tool.refuse("name", tool.path_of("name") + " is missing, expected the namespace's name");
  if (tools == nullptr) return tool.refuse("tools", tool.path_of("tools") + " is missing, expected an array of tools");
  for (size_t i = 0; i < tools->size() && !fields_.fault(); ++i) {
    read_one((*tools)[i], fmt::format("{}[{}]", tool.path_of("tools"), i), name, i == 0 ? words : "");
  }
}

// The type of a choice that is an object.
std::string type_of(const Json& choice) {
  const auto type = choice.is_object() ? choice.find("type") : choice.end();
  return choice.is_object() && type != choice.end() && type->is_string() ? type->get<std::string>() : std::string();
}

// The tool that a choice names; nullptr: none, and the choice is refused.
const OfferedTool* chosen_tool(Fields& fields, const ToolSet& tools, const Json& choice, const std::string& where) {
  if (!choice.is_object()) {
    fields.refuse("tool_choice", fmt::format("{} is {}, expected an object", where, shown(choice)));
    return nullptr;
  }
  Fields one(choice, where);
  const std::string name = one.text("name").value_or("");
  const std::string name_space = one.text("namespace").value_or("");
  if (one.fault()) fields.refuse_with(*one.fault());
  const OfferedTool* const tool = find_tool(tools.offered, name, name_space);
  if (tool == nullptr) {
    fields.refuse("tool_choice", fmt::format("{}.name is {}, expected a tool that is in tools", where,
                                             name.empty() ? "missing" : shown(Json(name))));
  }
  return tool;
}

// {"type": "allowed_tools", "mode": "auto", "tools": [...]}: the others are as if they were not there. The mode, or ""
// where it is refused.
std::string keep_allowed(Fields& fields, const Json& choice, ToolSet& tools) {
  Fields allowed(choice, "tool_choice");
  std::string mode = allowed.text("mode").value_or("auto");
  const Json* list = allowed.array("tools");
  if (mode != "auto" && mode != "required") allowed.refuse("mode", "tool_choice.mode is not auto or required");
  if (list == nullptr || list->empty() || list->size() > kMaxTools) {
    allowed.refuse("tools", fmt::format("tool_choice.tools is not an array of 1 to {} tools", kMaxTools));
  }
  if (allowed.fault()) return fields.refuse_with(*allowed.fault()), "";
  std::vector<OfferedTool> kept;
  Json shown_ones = Json::array();
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& one = (*list)[i];
    if (is_hosted(type_of(one))) continue;
    const OfferedTool* tool = chosen_tool(fields, tools, one, fmt::format("tool_choice.tools[{}]", i));
    if (tool == nullptr) return "";
    shown_ones.push_back(tools.shown[static_cast<size_t>(tool - tools.offered.data())]);
    kept.push_back(*tool);
  }
  tools.offered = std::move(kept);
  tools.shown = std::move(shown_ones);
  return mode;
}

}  // namespace

std::string shown_name(std::string_view name, std::string_view name_space) {
  return name_space.empty() || name.empty() ? std::string(name) : fmt::format("{}__{}", name_space, name);
}

const OfferedTool* find_tool(const std::vector<OfferedTool>& tools, std::string_view name,
                             std::string_view name_space) {
  const auto found = std::ranges::find_if(
      tools, [&](const OfferedTool& tool) { return tool.name == name && tool.name_space == name_space; });
  return found == tools.end() ? nullptr : &*found;
}

ToolSet read_tools(Fields& fields, std::vector<std::string>& warnings) {
  ToolSet set;
  const Json* tools = fields.array("tools");
  if (tools == nullptr) return set;
  ToolReader reader(fields, set, warnings);
  for (size_t i = 0; i < tools->size() && !fields.fault(); ++i) reader.read((*tools)[i], fmt::format("tools[{}]", i));
  if (fields.fault()) return set;
  if (std::string fault = fault_of_tools(set.shown); !fault.empty()) fields.refuse("tools", std::move(fault));
  return set;
}

void read_tool_choice(Fields& fields, ToolSet& tools, ChatPrompt& chat, ApiRequest& result) {
  const Json* choice = fields.raw("tool_choice");
  const std::string type = choice == nullptr ? "" : type_of(*choice);
  std::string word = choice == nullptr ? "auto" : choice->is_string() ? choice->get<std::string>() : "";
  if (fields.fault()) return;
  if (type == "allowed_tools") {
    word = keep_allowed(fields, *choice, tools);
    if (word.empty()) return;
  }
  std::optional<std::string> name;
  if (type == "function" || type == "custom") {
    const OfferedTool* tool = chosen_tool(fields, tools, *choice, "tool_choice");
    if (tool == nullptr) return;
    name = tool->shown;
    word = "required";
  }
  if (word != "auto" && word != "none" && word != "required") {
    return fields.refuse("tool_choice",
                         fmt::format("tool_choice is {}, expected none, auto, required, or a function, a "
                                     "custom tool or allowed_tools by type",
                                     type.empty() ? shown(*choice) : shown(Json(type))));
  }
  if (word == "required" && tools.offered.empty()) {
    return fields.refuse("tool_choice", "tool_choice asks for a call, and there are no tools");
  }
  result.has_tools = !tools.offered.empty() && word != "none";
  if (word == "required") force_call(tools.shown, name, result);
  if (result.has_tools) chat.tools_json = to_text(tools.shown);
}

}  // namespace candor::serve::responses
