#pragma once
// ASCII helpers for header fields and addresses.

#include <optional>
#include <string>
#include <string_view>

namespace candor::http {

inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lowered;
}

inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "%2F" and its like as the bytes that they stand for; what is no such code stays.
std::string percent_decoded(std::string_view text);

// What a query ("a=1&b=2") says of a name, decoded; of one that appears twice the first.
std::optional<std::string> query_value(std::string_view query, std::string_view name);

}  // namespace candor::http
