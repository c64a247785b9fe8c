#pragma once
// JSON whose objects keep the order of their keys, as templates show it, read in time and memory linear in its bytes:
// nlohmann's own parser looks for each key among all those before it. Strict (RFC 8259), bounded in depth and in
// values, no number that a double cannot hold. Reentrant.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"

namespace candor::text {

struct JsonLimits {
  size_t depth = 128;  // writing and destroying what was read recurse
  size_t n_values = 1'000'000;
  bool keys_may_repeat = false;  // the last one counts, where the first stood
  bool allows_minus_zero = false;  // as 0
};

// An error's message continues the name of the text: "is not valid JSON at byte 5", "holds values nested deeper than
// 128".
Result<nlohmann::ordered_json> read_ordered_json(std::string_view text, const JsonLimits& limits);

}  // namespace candor::text
