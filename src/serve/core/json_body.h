#pragma once
// A client's JSON, read strictly (RFC 8259, and further): one object at the top, nothing behind it, no key twice, no
// nesting deeper than kMaxDepth, no number that a double cannot hold, valid UTF-8. Order of keys is kept: templates
// show it.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::serve {

using Json = nlohmann::ordered_json;

inline constexpr size_t kMaxDepth = 128;
inline constexpr size_t kMaxValues = 1'000'000;

Result<Json> parse_body(std::string_view body);
// The same of a body that may be a list.
Result<Json> parse_any_body(std::string_view body);

// What a model or a translation wrote, within the same depth; of a key that appears twice the last value counts. Time
// linear in the text: Json::parse looks for each key among all those before it.
std::optional<Json> read_written(std::string_view text);

// As text for a reply; invalid UTF-8 becomes U+FFFD.
std::string to_text(const Json& json);

}  // namespace candor::serve
