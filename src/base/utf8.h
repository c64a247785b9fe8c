#pragma once
// UTF-8 as The Unicode Standard defines it (no surrogates, no overlong forms, at most U+10FFFF).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace candor {

struct CodePoint {
  uint32_t value = 0;  // U+FFFD where `valid` is false
  uint8_t length = 0;  // bytes taken, 1 for an invalid byte
  bool valid = false;
};

// Decodes the code point at `at`. REQUIRES: at < text.size().
CodePoint decode_utf8(std::string_view text, size_t at);

// Offset of the first byte that is not valid UTF-8, or text.size().
size_t first_invalid_utf8(std::string_view text);

// Length of the longest prefix that does not end inside a code point that further bytes could still complete.
// Bytes that can never become valid count as complete.
size_t complete_utf8_prefix(std::string_view text);

void append_utf8(std::string& out, uint32_t code_point);

// At most that many bytes of it, whole code points, and "..." where something is left out: what a client or a file
// wrote, as a message quotes it.
std::string clipped(std::string_view text, size_t most_bytes = 64);

// For showing text to a person: U+FFFD for every byte that begins nothing, and one for the beginning of a code point
// that nothing completes, as the standard recommends (maximal subparts).
std::string to_valid_utf8(std::string_view text);

}  // namespace candor
