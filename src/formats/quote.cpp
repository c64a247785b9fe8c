#include "formats/quote.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/utf8.h"

namespace candor::formats {

std::string in_quotes(std::string_view text) {
  constexpr size_t kLongest = 100;
  std::string out = "'";
  for (size_t at = 0; at < text.size();) {
    if (at >= kLongest) return out + "...'";
    const CodePoint point = decode_utf8(text, at);
    const auto first = static_cast<unsigned char>(text[at]);
    if (!point.valid || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
    } else {
      out += text.substr(at, point.length);
    }
    at += point.length;
  }
  return out + "'";
}

}  // namespace candor::formats
