#pragma once
// Byte tokens as SentencePiece writes them: "<0x0A>".

#include <optional>
#include <string_view>

namespace candor::text {

inline std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10u;
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10u;
  return std::nullopt;
}

// Nothing for a piece of another form.
inline std::optional<char> parse_byte_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece.back() != '>') return std::nullopt;
  const std::optional<unsigned> high = hex_digit(piece[3]);
  const std::optional<unsigned> low = hex_digit(piece[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<char>(*high * 16 + *low);
}

}  // namespace candor::text
