#include "serve/core/keep_alive.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <system_error>
#include <utility>

namespace candor::serve {
namespace {

constexpr size_t kMostBytes = 64;
constexpr double kMost = 1e9;

// A number without a sign at the front of the text, which it leaves.
std::optional<double> take_number(std::string_view& text) {
  const size_t n = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  double value = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> take_unit(std::string_view& text) {
  static constexpr std::array<std::pair<std::string_view, double>, 8> kUnits = {{{"ns", 1e-9},
                                                                                 {"us", 1e-6},
                                                                                 {"\xC2\xB5s", 1e-6},
                                                                                 {"\xCE\xBCs", 1e-6},
                                                                                 {"ms", 1e-3},
                                                                                 {"s", 1},
                                                                                 {"m", 60},
                                                                                 {"h", 3600}}};
  for (const auto& [name, seconds] : kUnits) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    return seconds;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_keep_alive(std::string_view text) {
  if (text.size() > kMostBytes) return std::nullopt;
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double seconds = 0;
  for (bool is_first = true; !text.empty(); is_first = false) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (is_first && text.empty() && *number == 0) return 0.0;
    const auto unit = take_unit(text);
    if (!unit) return std::nullopt;
    seconds += *number * *unit;
  }
  seconds = std::min(seconds, kMost);
  return is_negative ? -seconds : seconds;
}

}  // namespace candor::serve
