// What the steps of most grammars do with the parts of a call.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/chat/call_json.h"
#include "text/chat/forms/blanks.h"
#include "text/chat/forms/call_reader.h"
#include "text/chat/forms/notation.h"
#include "text/chat/forms/tool_types.h"
#include "text/chat/forms/value_text.h"

namespace candor::text {
namespace {

using CallJson = nlohmann::ordered_json;

std::string quoted_key(std::string_view text) {
  return CallJson(text).dump(-1, ' ', false, CallJson::error_handler_t::replace);
}

// Arguments as the text of a JSON object; a string is taken as that text.
std::optional<std::string> arguments_of(const CallJson& call) {
  for (const char* name : {"arguments", "parameters"}) {
    const auto it = call.find(name);
    if (it == call.end()) continue;
    if (it->is_object()) return it->dump();
    if (!it->is_string()) return std::nullopt;
    const auto inner = read_call_json(it->get_ref<const std::string&>());
    return inner && inner->is_object() ? std::optional(inner->dump()) : std::nullopt;
  }
  return "{}";
}

bool may_be_called(const CallParts& parts, std::string_view name) {
  return !name.empty() && (!parts.must_be_known || parts.types == nullptr || parts.types->knows(name));
}

bool add_call(CallParts& parts, const CallJson& call) {
  const auto name = call.is_object() ? call.find("name") : call.end();
  if (!call.is_object() || name == call.end() || !name->is_string()) return false;
  auto arguments = arguments_of(call);
  if (!arguments || !may_be_called(parts, name->get_ref<const std::string&>())) return false;
  parts.calls.push_back({.name = name->get<std::string>(), .arguments = std::move(*arguments)});
  return true;
}

}  // namespace

void CallParts::add_argument(std::string_view argument, std::string json) {
  const auto [place, is_new] = places.emplace(argument, arguments.size());
  if (is_new) {
    arguments.emplace_back(argument, std::move(json));
  } else {
    arguments[place->second].second = std::move(json);
  }
}

bool take_name(CallParts& parts, std::string_view text) {
  parts.name = trimmed(text);
  return !parts.name.empty() && parts.name.find_first_of("<>{}\n") == std::string::npos;
}

bool take_key(CallParts& parts, std::string_view text) {
  parts.key = trimmed(text);
  return !parts.key.empty();
}

bool take_text(CallParts& parts, std::string_view text) {
  const ToolTypes untyped;
  const ToolTypes& types = parts.types != nullptr ? *parts.types : untyped;
  parts.add_argument(parts.key, types.typed(parts.name, parts.key, text));
  return true;
}

bool take_calls(CallParts& parts, std::string_view text) {
  return take_calls_in(parts, text, kStrictJson);
}

bool take_calls_in(CallParts& parts, std::string_view text, const Notation& notation) {
  const auto json = read_value(text, notation);
  if (!json) return false;
  if (!json->is_array()) return add_call(parts, *json);
  return !json->empty() && std::ranges::all_of(*json, [&](const CallJson& call) { return add_call(parts, call); });
}

bool take_arguments(CallParts& parts, std::string_view text) {
  return take_arguments_in(parts, text, kStrictJson);
}

bool take_arguments_in(CallParts& parts, std::string_view text, const Notation& notation) {
  const auto json = read_value(text, notation);
  if (!json || !json->is_object() || parts.name.empty()) return false;
  parts.calls.push_back({.name = parts.name, .arguments = json->dump()});
  return true;
}

bool close_call(CallParts& parts, std::string_view) {
  std::string object = "{";
  for (const auto& [key, value] : parts.arguments) {
    object += (object.size() > 1 ? "," : "") + quoted_key(key) + ":" + value;
  }
  parts.calls.push_back({.name = std::move(parts.name), .arguments = object + "}"});
  parts.arguments.clear();
  parts.places.clear();
  return true;
}

}  // namespace candor::text
