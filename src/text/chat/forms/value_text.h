#pragma once
// A value in another notation as the same value in JSON: strings between other marks, bare keys, Python's words, tuples
// and calls. Translated word by word without recursion, in time linear in the text; what comes out is read as JSON,
// which is what says whether it was well formed.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "text/chat/forms/notation.h"

namespace candor::text {

// A call name(key=value) that stands by itself or in the outermost list becomes {"name": ..., "arguments": {...}}.
std::optional<nlohmann::ordered_json> read_value(std::string_view text, const Notation& notation);

}  // namespace candor::text
