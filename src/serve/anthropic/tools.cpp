// tools and tool_choice of POST /v1/messages, in the form that the core reads.

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "serve/anthropic/requests.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve::anthropic {
namespace {

class ToolReader {
 public:
  ToolReader(Fields& fields, std::vector<std::string>& warnings) : fields_(fields), warnings_(warnings) {}

  // In OpenAI's form, those that the client runs.
  Json read() {
    const Json* given = fields_.array("tools");
    if (given == nullptr) return tools_;
    for (size_t i = 0; i < given->size() && !fields_.fault(); ++i) add((*given)[i], fmt::format("tools[{}]", i));
    if (fields_.fault()) return tools_;
    if (const std::string fault = fault_of_tools(tools_); !fault.empty()) fields_.refuse("tools", fault);
    return tools_;
  }
  bool is_elsewhere(const std::string& name) const { return elsewhere_.contains(name); }

 private:
  void add(const Json& value, const std::string& where) {
    if (!value.is_object())
      return fields_.refuse("tools", fmt::format("{} is {}, expected an object", where, shown(value)));
    Fields tool(value, where);
    const std::string type = tool.text("type").value_or("custom");
    const std::string name = tool.text("name").value_or("");
    const auto description = tool.text("description");
    const Json* schema = tool.object("input_schema");
    tool.object("cache_control");
    const auto strict = tool.boolean("strict");
    if (!tool.fault() && name.empty()) tool.refuse("name", where + ".name is missing, expected a string");
    if (!tool.fault() && !names_.insert(name).second)
      tool.refuse("name", fmt::format("{}.name {} is that of an earlier tool", where, shown(Json(name))));
    if (!tool.fault() && type == "custom") check_schema(tool, schema);
    if (tool.fault()) return fields_.refuse("tools", tool.fault()->message);
    if (schema == nullptr) {
      elsewhere_.insert(name);
      return warnings_.push_back(fmt::format("{} {} of type {} is not offered: no such tool runs here", where,
                                             shown(Json(name)), shown(Json(type))));
    }
    Json function = {{"name", name}};
    if (description) function["description"] = *description;
    function["parameters"] = *schema;
    if (strict) function["strict"] = *strict;
    tools_.push_back({{"type", "function"}, {"function", std::move(function)}});
  }

  static void check_schema(Fields& tool, const Json* schema) {
    const std::string where = tool.path_of("input_schema");
    if (schema == nullptr) return tool.refuse("input_schema", where + " is missing, expected a JSON schema");
    const auto type = schema->find("type");
    if (type != schema->end() && *type != "object")
      tool.refuse("input_schema", fmt::format("{}.type is {}, expected object", where, shown(*type)));
  }

  Fields& fields_;
  std::vector<std::string>& warnings_;
  Json tools_ = Json::array();
  std::set<std::string> names_;
  std::set<std::string> elsewhere_;
};

void force(Fields& fields, const Json& tools, const std::optional<std::string>& name, const ToolReader& reader,
           ApiRequest& result) {
  if (name && reader.is_elsewhere(*name))
    return fields.refuse("tool_choice",
                         fmt::format("tool_choice.name is {}, a tool that does not run here", shown(Json(*name))));
  if (tools.empty()) return fields.refuse("tool_choice", "tool_choice asks for a call, and there are no tools");
  result.has_tools = true;
  if (!force_call(tools, name, result))
    fields.refuse("tool_choice", fmt::format("tool_choice.name is {}, which is not in tools", shown(Json(*name))));
}

}  // namespace

void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result) {
  ToolReader reader(fields, result.warnings);
  const Json tools = reader.read();
  result.has_tools = !tools.empty();
  if (const Json* given = fields.object("tool_choice"); given != nullptr && !fields.fault()) {
    Fields choice(*given, "tool_choice");
    const std::string type = choice.text("type").value_or("");
    const auto name = choice.text("name");
    result.parallel_tool_calls = !choice.boolean("disable_parallel_tool_use").value_or(false);
    if (choice.fault()) return fields.refuse_with(*choice.fault());
    if (type == "none") {
      result.has_tools = false;
    } else if (type == "any" || (type == "tool" && name)) {
      force(fields, tools, type == "tool" ? name : std::nullopt, reader, result);
    } else if (type == "tool") {
      return fields.refuse("tool_choice", "tool_choice.name is missing, expected the name of a tool");
    } else if (type != "auto") {
      return fields.refuse("tool_choice",
                           fmt::format("tool_choice.type is {}, expected auto, any, tool or none", shown(Json(type))));
    }
  }
  if (result.has_tools && !fields.fault()) chat.tools_json = to_text(tools);
}

}  // namespace candor::serve::anthropic
