#pragma once
// Translates a value from another notation (notation.h: other string quotes, unquoted keys, Python's literals, tuples
// and calls) to JSON, word by word, without recursion, in time linear in the text. It does not check the value: the
// JSON parser that reads the result does.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "text/chat/forms/notation.h"

namespace candor::text {

// A call name(key=value) that stands by itself or in the outermost list becomes {"name": ..., "arguments": {...}}.
std::optional<nlohmann::ordered_json> read_value(std::string_view text, const Notation& notation);

}  // namespace candor::text
