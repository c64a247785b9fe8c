#pragma once
// How long a model that nobody uses stays loaded: seconds; negative: until its room is needed; 0: not at all.

#include <optional>
#include <string_view>

namespace candor::serve {

// A duration as Go writes it, in seconds: "5m", "1h30m", "1.5h", "-1s", "0". Nothing where it is none.
std::optional<double> parse_keep_alive(std::string_view text);

}  // namespace candor::serve
