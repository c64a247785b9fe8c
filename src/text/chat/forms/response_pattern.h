#pragma once
// The regular expressions of response templates, as far as a linear reader can follow them without going back:
// literals, blanks, optional literals, runs of a class of characters, and any text up to the literal behind it.
// Everything else is refused by name.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::text {

struct PatternItem {
  enum class Kind : uint8_t { kLiteral, kOptional, kBlanks, kRun, kText };
  Kind kind = Kind::kLiteral;
  std::string text{};  // kLiteral, kOptional: it; kRun: the bytes that end it
  std::string name{};  // of the group that takes a kRun or a kText; may be empty
};

// Neighbouring literals are one item.
Result<std::vector<PatternItem>> parse_response_pattern(std::string_view pattern);

}  // namespace candor::text
