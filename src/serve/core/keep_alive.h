#pragma once
// How long a model that nobody uses stays loaded: seconds; negative: until its room is needed; 0: not at all.

#include <optional>
#include <string_view>

#include "base/error.h"

namespace candor::serve {

// "300", "5m", "1h30m", "1.5h", "-1": seconds, or a duration as Go writes it. Nothing where it is neither.
std::optional<double> parse_keep_alive(std::string_view text);

}  // namespace candor::serve
