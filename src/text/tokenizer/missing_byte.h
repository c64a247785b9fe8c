#pragma once
// What ends an encode(): a byte for which the vocabulary has no token, where no unknown token may stand for it.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace candor::text {

struct MissingByte {
  std::string character;  // that needs it; the byte itself where the text is no UTF-8
  char byte = 0;
};

// Nothing: the whole text was encoded.
using Missing = std::optional<MissingByte>;

// REQUIRES: at < text.size().
inline MissingByte missing_byte_at(std::string_view text, size_t at) {
  size_t begin = 0;
  size_t end = 0;
  for (; end <= at; end += decode_utf8(text, end).length) begin = end;
  return {.character = std::string(text.substr(begin, end - begin)), .byte = text[at]};
}

}  // namespace candor::text
