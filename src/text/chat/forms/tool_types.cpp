#include "text/chat/forms/tool_types.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "text/chat/call_json.h"
#include "text/chat/forms/blanks.h"
#include "text/chat/forms/notation.h"
#include "text/chat/forms/value_text.h"

namespace candor::text {
namespace {

using TypeJson = nlohmann::ordered_json;

enum JsonType : uint8_t {
  kStringType = 1,
  kNumberType = 2,
  kBooleanType = 4,
  kNullType = 8,
  kObjectType = 16,
  kArrayType = 32
};
constexpr uint8_t kAnyType = 0;

constexpr std::array<std::pair<std::string_view, JsonType>, 7> kNames = {{{"string", kStringType},
                                                                          {"number", kNumberType},
                                                                          {"integer", kNumberType},
                                                                          {"boolean", kBooleanType},
                                                                          {"null", kNullType},
                                                                          {"object", kObjectType},
                                                                          {"array", kArrayType}}};

uint8_t type_named(const TypeJson& name) {
  if (!name.is_string()) return kAnyType;
  for (const auto& [word, type] : kNames) {
    if (name.get_ref<const std::string&>() == word) return type;
  }
  return kAnyType;
}

JsonType type_of(const TypeJson& value) {
  if (value.is_string()) return kStringType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_null()) return kNullType;
  if (value.is_object()) return kObjectType;
  return value.is_array() ? kArrayType : kNumberType;
}

// By "type", "enum" or "const", else by the alternatives; any where one of them says nothing.
uint8_t types_in(const TypeJson& schema, int32_t depth) {
  constexpr int32_t kMaxDepth = 8;
  if (!schema.is_object() || depth > kMaxDepth) return kAnyType;
  if (const auto type = schema.find("type"); type != schema.end()) {
    if (!type->is_array()) return type_named(*type);
    uint8_t types = kAnyType;
    for (const TypeJson& name : *type) types |= type_named(name);
    return types;
  }
  if (const auto value = schema.find("const"); value != schema.end()) return type_of(*value);
  uint8_t types = kAnyType;
  if (const auto values = schema.find("enum"); values != schema.end() && values->is_array()) {
    for (const TypeJson& value : *values) types |= type_of(value);
    return types;
  }
  for (const char* word : {"anyOf", "oneOf"}) {
    const auto ways = schema.find(word);
    if (ways == schema.end() || !ways->is_array()) continue;
    for (const TypeJson& way : *ways) {
      const uint8_t more = types_in(way, depth + 1);
      if (more == kAnyType) return kAnyType;
      types |= more;
    }
  }
  return types;
}

std::string as_json_string(std::string_view text) {
  return TypeJson(text).dump(-1, ' ', false, TypeJson::error_handler_t::replace);
}

const TypeJson* type_member(const TypeJson& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(name);
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

std::shared_ptr<const ToolTypes> ToolTypes::of(std::string_view tools_json) {
  auto result = std::make_shared<ToolTypes>();
  const auto tools = read_call_json(tools_json);
  if (!tools || !tools->is_array()) return result;
  for (const TypeJson& tool : *tools) {
    const TypeJson* function = type_member(tool, "function");
    const TypeJson* name = function != nullptr ? type_member(*function, "name") : nullptr;
    if (name == nullptr || !name->is_string()) continue;
    Arguments& arguments = result->tools_[name->get<std::string>()];
    const TypeJson* parameters = type_member(*function, "parameters");
    const TypeJson* properties = parameters != nullptr ? type_member(*parameters, "properties") : nullptr;
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& [key, schema] : properties->items()) arguments[key] = types_in(schema, 0);
  }
  return result;
}

std::string ToolTypes::typed(std::string_view tool, std::string_view argument, std::string_view value) const {
  uint8_t types = kAnyType;
  if (const auto known = tools_.find(tool); known != tools_.end()) {
    const auto type = known->second.find(argument);
    if (type != known->second.end()) types = type->second;
  }
  if (types == kStringType) return as_json_string(value);
  const std::string_view bare = trimmed(value);
  auto json = read_call_json(bare);
  const bool is_json = json.has_value();
  const bool may_be_python = bare == "True" || bare == "False" || (types & (kNullType | kObjectType | kArrayType)) != 0;
  if (!json && may_be_python) json = read_value(bare, kPythonLiteral);
  if (!json || json->is_string()) return as_json_string(value);
  if (types != kAnyType && (types & type_of(*json)) == 0) return as_json_string(value);
  const bool is_number = is_json && type_of(*json) == kNumberType;  // as it was written: a double might not hold it
  return is_number ? std::string(bare) : json->dump();
}

}  // namespace candor::text
