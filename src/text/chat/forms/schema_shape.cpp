#include "text/chat/forms/schema_shape.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

namespace candor::text {
namespace {

using ShapeJson = nlohmann::ordered_json;

constexpr int32_t kMaxSchemaDepth = 32;
constexpr double kMostBound = 1e15;  // exact wherever it is computed with
constexpr int64_t kMostCount = 10'000;

constexpr std::array<std::string_view, 7> kTypeNames = {"string", "number", "integer", "boolean",
                                                        "null",   "object", "array"};
constexpr std::array<std::string_view, 6> kRemarks = {"description", "title",   "default",
                                                      "examples",    "$schema", "$comment"};

bool is_type_name(const ShapeJson& name) {
  return name.is_string() && std::ranges::find(kTypeNames, name.get_ref<const std::string&>()) != kTypeNames.end();
}

bool is_remark(std::string_view word) {
  return std::ranges::find(kRemarks, word) != kRemarks.end();
}

std::string place_in(std::string where, std::string_view member) {
  where += '.';
  return where += member;
}

class SchemaWalk {
 public:
  // The first word that is not plain, with its place; "" where there is none.
  std::string fault(const ShapeJson& schema, const std::string& where, int32_t depth) {
    if (schema.is_boolean()) return depth > 0 ? "" : where + " is no object";
    if (!schema.is_object()) return where + " is no schema";
    if (depth > kMaxSchemaDepth) return where + " is nested too deep";
    for (const auto& [word, value] : schema.items()) {
      if (std::string found = fault_of_word(word, value, place_in(where, word), depth); !found.empty()) return found;
    }
    return {};
  }

 private:
  std::string fault_of_word(const std::string& word, const ShapeJson& value, const std::string& where, int32_t depth) {
    if (is_remark(word)) return {};
    if (word == "properties" || word == "$defs" || word == "definitions") return fault_of_named(value, where, depth);
    if (word == "items" || word == "additionalProperties") return fault(value, where, depth + 1);
    if (word == "anyOf") return fault_of_list(value, where, depth);
    return is_plain_word(word, value) ? "" : where + " has no place in it";
  }

  static bool is_plain_word(std::string_view word, const ShapeJson& value) {
    if (word == "type")
      return is_type_name(value) || (value.is_array() && !value.empty() && std::ranges::all_of(value, is_type_name));
    if (word == "required")
      return value.is_array() && std::ranges::all_of(value, [](const ShapeJson& name) { return name.is_string(); });
    if (word == "enum") return value.is_array() && !value.empty();
    if (word == "const") return true;
    if (word == "minimum" || word == "maximum") return value.is_number() && std::abs(value.get<double>()) < kMostBound;
    if (word == "minLength" || word == "maxLength" || word == "minItems" || word == "maxItems")
      return value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kMostCount);
    if (word == "$ref") return value.is_string() && (value.get_ref<const std::string&>().starts_with("#/$defs/") ||
                                                     value.get_ref<const std::string&>().starts_with("#/definitions/"));
    return word == "pattern" && value.is_string();
  }

  std::string fault_of_named(const ShapeJson& named, const std::string& where, int32_t depth) {
    if (!named.is_object()) return where + " is no object";
    for (const auto& [name, schema] : named.items()) {
      if (std::string found = fault(schema, place_in(where, name), depth + 1); !found.empty()) return found;
    }
    return {};
  }

  std::string fault_of_list(const ShapeJson& list, const std::string& where, int32_t depth) {
    if (!list.is_array() || list.empty()) return where + " is no list of schemas";
    for (const ShapeJson& schema : list) {
      if (std::string found = fault(schema, where, depth + 1); !found.empty()) return found;
    }
    return {};
  }
};

bool are_all_strings(const ShapeJson& list) {
  return std::ranges::all_of(list, [](const ShapeJson& one) { return one.is_string(); });
}

bool has_no_string(const ShapeJson& list) {
  return std::ranges::none_of(list, [](const ShapeJson& one) { return one.is_string(); });
}

// Nothing but remarks and these words.
bool says_only(const ShapeJson& schema, std::initializer_list<std::string_view> words) {
  return std::ranges::all_of(schema.items(), [&](const auto& item) {
    return is_remark(item.key()) || std::ranges::find(words, item.key()) != words.end();
  });
}

TextShape shape_of_type(const ShapeJson& schema, const ShapeJson& type) {
  if (type == "string")
    return says_only(schema, {"type", "minLength", "maxLength"}) ? TextShape::kText : TextShape::kOther;
  return type.is_string() ? TextShape::kValue : TextShape::kOther;
}

}  // namespace

std::string fault_of_schema(const ShapeJson& schema, const std::string& where) {
  return SchemaWalk().fault(schema, where, 0);
}

TextShape text_shape_of(const ShapeJson& schema) {
  if (!schema.is_object() || schema.dump().find("\"$ref\"") != std::string::npos) return TextShape::kOther;
  const auto listed = schema.find("enum");
  const auto type = schema.find("type");
  if (listed != schema.end()) {
    if (are_all_strings(*listed)) return says_only(schema, {"type", "enum"}) ? TextShape::kListed : TextShape::kOther;
    return has_no_string(*listed) ? TextShape::kValue : TextShape::kOther;
  }
  if (const auto only = schema.find("const"); only != schema.end())
    return only->is_string() ? (says_only(schema, {"type", "const"}) ? TextShape::kListed : TextShape::kOther)
                             : TextShape::kValue;
  if (type == schema.end()) return says_only(schema, {}) ? TextShape::kText : TextShape::kOther;
  if (!type->is_array()) return shape_of_type(schema, *type);
  return std::ranges::find(*type, "string") == type->end() ? TextShape::kValue : TextShape::kOther;
}

}  // namespace candor::text
