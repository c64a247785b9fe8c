#include "text/chat/forms/region_content.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "text/chat/call_json.h"
#include "text/chat/forms/blanks.h"
#include "text/chat/forms/response_template.h"
#include "text/chat/forms/value_text.h"

namespace candor::text {
namespace {

using RegionJson = nlohmann::ordered_json;

const RegionJson* region_member(const RegionJson& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

// "content", "content.name", or "name" of an element where elements are calls.
const RegionJson* at_path(const RegionJson& content, std::string_view path, bool is_each) {
  constexpr std::string_view kContent = "content";
  if (path == kContent) return &content;
  const bool is_inside = path.starts_with("content.");
  if (!is_inside && !is_each) return nullptr;
  const RegionJson* value = &content;
  std::string_view rest = is_inside ? path.substr(kContent.size() + 1) : path;
  while (value != nullptr && !rest.empty()) {
    const size_t dot = std::min(rest.find('.'), rest.size());
    value = region_member(*value, rest.substr(0, dot));
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  return value;
}

std::optional<std::string> region_arguments(const RegionJson* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_object()) return value->dump();
  if (!value->is_string()) return std::nullopt;
  const auto inner = read_call_json(value->get_ref<const std::string&>());
  return inner && inner->is_object() ? std::optional(inner->dump()) : std::nullopt;
}

bool add_whole_call(CallParts& parts, const RegionJson* call) {
  if (call == nullptr) return false;
  if (const RegionJson* function = region_member(*call, "function"); function != nullptr) call = function;
  const RegionJson* name = region_member(*call, "name");
  const RegionJson* given = region_member(*call, "arguments");
  if (given == nullptr) given = region_member(*call, "parameters");
  const auto arguments = given == nullptr ? std::optional<std::string>("{}") : region_arguments(given);
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty() || !arguments) return false;
  parts.calls.push_back({.name = name->get<std::string>(), .arguments = *arguments});
  return true;
}

bool add_shaped(CallParts& parts, const RegionJson& content) {
  const CallShape& shape = parts.region->shape;
  if (!shape.call.empty()) return add_whole_call(parts, at_path(content, shape.call, shape.is_each));
  std::string name = parts.name;
  if (shape.name_is_plain) {
    name = shape.name;
  } else if (const RegionJson* value = at_path(content, shape.name, shape.is_each); value != nullptr) {
    if (!value->is_string()) return false;
    name = value->get<std::string>();
  } else if (shape.name != "name") {
    return false;
  }
  auto arguments = region_arguments(at_path(content, shape.arguments, shape.is_each));
  if (name.empty() || !arguments) return false;
  parts.calls.push_back({.name = std::move(name), .arguments = std::move(*arguments)});
  return true;
}

bool add_content(CallParts& parts, const RegionJson& content) {
  const bool is_list = content.is_array();
  if (!is_list) return !parts.region->shape.is_each && add_shaped(parts, content);
  return !content.empty() &&
         std::ranges::all_of(content, [&](const RegionJson& one) { return add_shaped(parts, one); });
}

}  // namespace

bool take_region_name(CallParts& parts, std::string_view text) {
  parts.name = trimmed(text);
  return !parts.name.empty();
}

bool take_region_json(CallParts& parts, std::string_view text) {
  const auto content = read_value(text, *parts.region->notation);
  return content && add_content(parts, *content);
}

bool take_region_lines(CallParts& parts, std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find(parts.region->line_end));
    text.remove_prefix(std::min(line.size() + parts.region->line_end.size(), text.size()));
    const size_t separator = line.find(parts.region->separator);
    if (separator == std::string_view::npos) continue;
    parts.key = trimmed(line.substr(0, separator));
    take_text(parts, trimmed(line.substr(separator + parts.region->separator.size())));
  }
  return close_region_tags(parts, {});
}

bool take_region_value(CallParts& parts, std::string_view text) {
  return take_text(parts, trimmed(text));
}

bool close_region_tags(CallParts& parts, std::string_view) {
  const std::string name = parts.name;
  close_call(parts, {});
  const ReadCall gathered = std::move(parts.calls.back());
  parts.calls.pop_back();
  parts.name = name;
  const auto content = read_call_json(gathered.arguments);
  return content && add_content(parts, *content);
}

}  // namespace candor::text
