#include "serve/core/json_body.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "text/chat/call_json.h"
#include "text/chat/ordered_json.h"

namespace candor::serve {
namespace {

Error bad(std::string message) {
  return fail(ErrorKind::kInvalidInput, std::move(message));
}

}  // namespace

Result<Json> parse_any_body(std::string_view body) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return bad("the body is empty, expected a JSON object");
  if (const size_t at = first_invalid_utf8(body); at != body.size()) {
    return bad(fmt::format("the body is not valid UTF-8 at byte {}", at));
  }
  auto json = text::read_ordered_json(body, {.depth = kMaxDepth, .n_values = kMaxValues});
  if (!json) return bad("the body " + json.error().message);
  return std::move(*json);
}

Result<Json> parse_body(std::string_view body) {
  auto json = parse_any_body(body);
  if (json && !json->is_object()) return bad("the body is not a JSON object");
  return json;
}

std::optional<Json> read_written(std::string_view text) {
  return text::read_call_json(text);
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace candor::serve
