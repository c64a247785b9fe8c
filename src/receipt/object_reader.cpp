#include "receipt/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/utf8.h"

namespace candor::receipt {

ObjectReader::ObjectReader(const Json& object, std::string path, std::optional<Error>& error)
    : object_(object), path_(std::move(path)), error_(error) {
  if (!object.is_object() && !error_) {
    error_ = Error{ErrorKind::kInvalidInput, fmt::format("{} is not an object", path_.empty() ? "the receipt" : path_),
                   "receipt"};
  }
}

std::string ObjectReader::path_of(const char* name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void ObjectReader::refuse(const char* name, const std::string& expected) {
  if (error_) return;
  error_ = Error{ErrorKind::kInvalidInput, fmt::format("{}: expected {}", path_of(name), expected), "receipt"};
}

void ObjectReader::refuse_others() {
  if (error_ || !object_.is_object()) return;
  for (const auto& [name, value] : object_.items()) {
    if (std::ranges::find(asked_, name) != asked_.end()) continue;
    error_ = Error{ErrorKind::kUnsupported,
                   fmt::format("{}: no field that this version knows; it checks all of a receipt or nothing",
                               path_of(clipped(name).c_str())),
                   "receipt"};
    return;
  }
}

const Json* ObjectReader::find(const char* name) {
  asked_.emplace_back(name);
  if (error_) return nullptr;
  const auto at = object_.find(name);
  if (at != object_.end()) return &*at;
  error_ = Error{ErrorKind::kInvalidInput, fmt::format("{} is missing", path_of(name)), "receipt"};
  return nullptr;
}

std::optional<std::int64_t> ObjectReader::optional_integer(const char* name, std::int64_t least, std::int64_t most) {
  const Json* value = find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  const bool is_small = value->is_number_integer() &&
                        (!value->is_number_unsigned() ||
                         value->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  if (is_small && value->get<std::int64_t>() >= least && value->get<std::int64_t>() <= most)
    return value->get<std::int64_t>();
  refuse(name, fmt::format("an integer from {} to {}", least, most));
  return std::nullopt;
}

std::int64_t ObjectReader::integer(const char* name, std::int64_t least, std::int64_t most) {
  const auto value = optional_integer(name, least, most);
  if (!value) refuse(name, fmt::format("an integer from {} to {}", least, most));
  return value.value_or(0);
}

std::optional<double> ObjectReader::optional_number(const char* name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_number()) return value->get<double>();
  refuse(name, "a number");
  return std::nullopt;
}

double ObjectReader::number(const char* name) {
  const auto value = optional_number(name);
  if (!value) refuse(name, "a number");
  return value.value_or(0.0);
}

bool ObjectReader::boolean(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return false;
  if (value->is_boolean()) return value->get<bool>();
  refuse(name, "true or false");
  return false;
}

std::optional<std::string> ObjectReader::optional_text(const char* name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  refuse(name, "a string");
  return std::nullopt;
}

std::string ObjectReader::text(const char* name) {
  auto value = optional_text(name);
  if (!value) refuse(name, "a string");
  return std::move(value).value_or("");
}

template <class Read>
void ObjectReader::each(const char* name, Read&& read) {
  const Json* list = array(name);
  if (list == nullptr) return;
  for (const Json& value : *list) {
    if (!read(value)) return;
  }
}

std::vector<std::string> ObjectReader::texts(const char* name) {
  std::vector<std::string> result;
  each(name, [&](const Json& value) {
    if (value.is_string()) result.push_back(value.get<std::string>());
    if (!value.is_string()) refuse(name, "an array of strings");
    return value.is_string();
  });
  return result;
}

std::vector<TokenId> ObjectReader::ids(const char* name) {
  std::vector<TokenId> result;
  each(name, [&](const Json& value) {
    const bool is_id = value.is_number_unsigned() && value.get<std::uint64_t>() <= std::numeric_limits<TokenId>::max();
    if (is_id) result.push_back(value.get<TokenId>());
    if (!is_id) refuse(name, "an array of token ids");
    return is_id;
  });
  return result;
}

std::vector<float> ObjectReader::floats(const char* name) {
  std::vector<float> result;
  constexpr double kMost = std::numeric_limits<float>::max();
  each(name, [&](const Json& value) {
    const bool is_float = value.is_number() && std::abs(value.get<double>()) <= kMost;
    if (is_float) result.push_back(static_cast<float>(value.get<double>()));
    if (!is_float) refuse(name, "an array of 32-bit numbers");
    return is_float;
  });
  return result;
}

std::string ObjectReader::digits(const char* name, std::size_t n_digits) {
  std::string value = text(name);
  if (value.size() != n_digits || value.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse(name, fmt::format("{} hexadecimal digits", n_digits));
  return value;
}

std::size_t ObjectReader::word(const char* name, const std::vector<std::string_view>& words) {
  const auto at = std::ranges::find(words, text(name));
  if (at != words.end()) return static_cast<std::size_t>(at - words.begin());
  refuse(name, fmt::format("one of {}", fmt::join(words, ", ")));
  return 0;
}

const Json* ObjectReader::optional_object(const char* name) {
  const Json* value = find(name);
  if (value == nullptr || value->is_null()) return nullptr;
  if (value->is_object()) return value;
  refuse(name, "an object");
  return nullptr;
}

const Json* ObjectReader::object(const char* name) {
  const Json* value = optional_object(name);
  if (value == nullptr) refuse(name, "an object");
  return value;
}

const Json* ObjectReader::array(const char* name) {
  const Json* value = find(name);
  if (value == nullptr) return nullptr;
  if (value->is_array()) return value;
  refuse(name, "an array");
  return nullptr;
}

}  // namespace candor::receipt
