#include "serve/core/fields.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/utf8.h"

namespace candor::serve {

std::string shown(const Json& value) {
  constexpr size_t kMost = 40;
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  std::string text = to_text(value);
  if (text.size() <= kMost) return text;
  text.resize(complete_utf8_prefix(std::string_view(text).substr(0, kMost)));
  return text + "...";
}

bool Fields::has(const char* name) const {
  const auto it = object_.find(name);
  return it != object_.end() && !it->is_null();
}

const Json* Fields::raw(const char* name) {
  asked_.emplace(name);
  const auto it = object_.find(name);
  return it == object_.end() || it->is_null() ? nullptr : &*it;
}

const Json* Fields::array(const char* name) {
  const Json* value = raw(name);
  if (value == nullptr || value->is_array()) return value;
  refuse_type(name, *value, "an array");
  return nullptr;
}

const Json* Fields::object(const char* name) {
  const Json* value = raw(name);
  if (value == nullptr || value->is_object()) return value;
  refuse_type(name, *value, "an object");
  return nullptr;
}

std::optional<double> Fields::number(const char* name, double least, double most) {
  const Json* value = raw(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_number()) {
    const double number = value->get<double>();
    if (number >= least && number <= most) return number;
  }
  refuse_type(name, *value, fmt::format("a number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<int64_t> Fields::integer(const char* name, int64_t least, int64_t most) {
  const Json* value = raw(name);
  if (value == nullptr) return std::nullopt;
  std::optional<int64_t> number;
  if (value->is_number_unsigned()) {
    const auto wide = value->get<uint64_t>();
    if (wide <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) number = static_cast<int64_t>(wide);
  } else if (value->is_number_integer()) {
    number = value->get<int64_t>();
  } else if (value->is_number_float()) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    const double wide = value->get<double>();
    if (std::trunc(wide) == wide && std::abs(wide) <= kExact) number = static_cast<int64_t>(wide);
  }
  if (number && *number >= least && *number <= most) return number;
  refuse_type(name, *value, fmt::format("a whole number from {} to {}", least, most));
  return std::nullopt;
}

std::optional<bool> Fields::boolean(const char* name) {
  const Json* value = raw(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  refuse_type(name, *value, "true or false");
  return std::nullopt;
}

std::optional<std::string> Fields::text(const char* name) {
  const Json* value = raw(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  refuse_type(name, *value, "a string");
  return std::nullopt;
}

void Fields::accept(std::initializer_list<const char*> names) {
  for (const char* name : names) asked_.emplace(name);
}

void Fields::refuse(const char* name, std::string message) {
  if (fault_) return;
  fault_ = fail(ErrorKind::kInvalidInput, std::move(message), path_of(name));
}

void Fields::refuse_type(const char* name, const Json& value, const std::string& expected) {
  refuse(name, fmt::format("{} is {}, expected {}", path_of(name), shown(value), expected));
}

std::vector<std::string> Fields::unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!asked_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace candor::serve
