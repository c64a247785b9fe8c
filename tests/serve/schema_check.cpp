#include "serve/schema_check.h"

#include <fstream>
#include <string_view>

namespace candor::testing {
namespace {

bool is_of_type(const Json& value, std::string_view type) {
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "array") return value.is_array();
  if (type == "object") return value.is_object();
  return type == "null" && value.is_null();
}

bool has_type(const Json& types, const Json& value) {
  if (types.is_string()) return is_of_type(value, types.get<std::string>());
  for (const Json& type : types) {
    if (is_of_type(value, type.get<std::string>())) return true;
  }
  return false;
}

std::string joined(const std::string& first, const std::string& second) {
  return first.empty() ? second : first + "; " + second;
}

}  // namespace

SchemaCheck::SchemaCheck(const std::string& project_path) {
  std::ifstream file(project_file(project_path));
  defs_ = Json::parse(file, nullptr, false)["$defs"];
}

std::string SchemaCheck::fault(const std::string& name, const Json& value) const {
  return defs_.contains(name) ? fault_of(defs_[name], value, name) : "no such schema: " + name;
}

std::string SchemaCheck::fault_of(const Json& schema, const Json& value, const std::string& where) const {
  if (schema.contains("$ref")) {
    const std::string path = schema["$ref"];
    return fault_of(defs_.at(path.substr(path.rfind('/') + 1)), value, where);
  }
  if (schema.contains("anyOf")) {
    std::string faults;
    for (const Json& one : schema["anyOf"]) {
      const std::string fault = fault_of(one, value, where);
      if (fault.empty()) return {};
      faults = joined(faults, fault);
    }
    return where + " is none of: " + faults;
  }
  if (schema.contains("type") && !has_type(schema["type"], value)) {
    return where + " is not of type " + schema["type"].dump() + ": " + value.dump().substr(0, 80);
  }
  if (schema.contains("enum")) {
    bool is_known = false;
    for (const Json& word : schema["enum"]) is_known = is_known || word == value;
    if (!is_known) return where + " is " + value.dump().substr(0, 80) + ", not one of " + schema["enum"].dump();
  }
  return fault_of_members(schema, value, where);
}

std::string SchemaCheck::fault_of_members(const Json& schema, const Json& value, const std::string& where) const {
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) return where + " lacks " + name.get<std::string>();
  }
  if (value.is_object() && schema.contains("properties")) {
    for (const auto& [name, inner] : schema["properties"].items()) {
      if (!value.contains(name)) continue;
      if (std::string fault = fault_of(inner, value[name], where + "." + name); !fault.empty()) return fault;
    }
  }
  if (value.is_array() && schema.contains("items")) {
    for (size_t i = 0; i < value.size(); ++i) {
      std::string fault = fault_of(schema["items"], value[i], where + "[" + std::to_string(i) + "]");
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

}  // namespace candor::testing
