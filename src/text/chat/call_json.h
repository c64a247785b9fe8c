#pragma once
// JSON that a model wrote: whatever a client made it write, so it is read with bounds before anything recursive sees
// it. The order of keys is kept; the last value of a repeated key counts. Time linear in the text, constant stack.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

namespace candor::text {

inline constexpr size_t kMaxCallDepth = 128;

// Nothing where the text is no JSON, or nested deeper than kMaxCallDepth.
std::optional<nlohmann::ordered_json> read_call_json(std::string_view text);

}  // namespace candor::text
