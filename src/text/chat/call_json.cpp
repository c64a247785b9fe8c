#include "text/chat/call_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/chat/ordered_json.h"

namespace candor::text {

std::optional<nlohmann::ordered_json> read_call_json(std::string_view text) {
  constexpr JsonLimits kLimits{.depth = kMaxCallDepth,
                               .n_values = std::numeric_limits<size_t>::max(),
                               .keys_may_repeat = true,
                               .allows_minus_zero = true};
  auto json = read_ordered_json(text, kLimits);
  if (!json) return std::nullopt;
  return std::move(*json);
}

}  // namespace candor::text
