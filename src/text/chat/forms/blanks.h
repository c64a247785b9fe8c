#pragma once
// The white space that may come between the parts of a tool call.

#include <cstddef>
#include <string_view>

namespace candor::text {

inline constexpr std::string_view kBlankBytes = " \t\r\n";

constexpr std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlankBytes);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlankBytes) - first + 1);
}

}  // namespace candor::text
