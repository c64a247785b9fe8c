#include "base/utf8.h"

namespace candor {
namespace {

struct LeadByte {
  int length;        // 0: not a lead byte
  uint8_t min_next;  // bounds of the second byte: rule out overlong forms, surrogates and values above U+10FFFF
  uint8_t max_next;
};

constexpr LeadByte classify(uint8_t b) {
  if (b < 0x80) return {1, 0, 0};
  if (b >= 0xC2 && b <= 0xDF) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b >= 0xE1 && b <= 0xEF) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b >= 0xF1 && b <= 0xF3) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Number of bytes at `at` that form a valid start of the sequence that `lead` opens.
int valid_bytes(std::string_view text, size_t at, const LeadByte& lead) {
  int n = 1;
  for (; n < lead.length && at + static_cast<size_t>(n) < text.size(); ++n) {
    const uint8_t b = static_cast<uint8_t>(text[at + static_cast<size_t>(n)]);
    const bool ok = n == 1 ? (b >= lead.min_next && b <= lead.max_next) : (b & 0xC0u) == 0x80u;
    if (!ok) break;
  }
  return n;
}

}  // namespace

CodePoint decode_utf8(std::string_view text, size_t at) {
  constexpr CodePoint kInvalid{0xFFFD, 1, false};
  const uint8_t first = static_cast<uint8_t>(text[at]);
  const LeadByte lead = classify(first);
  if (lead.length == 1) return {first, 1, true};
  if (lead.length == 0 || valid_bytes(text, at, lead) != lead.length) return kInvalid;
  uint32_t value = first & (0xFFu >> (lead.length + 1));
  for (int i = 1; i < lead.length; ++i)
    value = (value << 6) | (static_cast<uint8_t>(text[at + static_cast<size_t>(i)]) & 0x3Fu);
  return {value, static_cast<uint8_t>(lead.length), true};
}

size_t first_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text, at);
    if (!c.valid) return at;
    at += c.length;
  }
  return at;
}

size_t complete_utf8_prefix(std::string_view text) {
  const size_t window = text.size() < 3 ? text.size() : 3;
  for (size_t back = 1; back <= window; ++back) {
    const size_t at = text.size() - back;
    const LeadByte lead = classify(static_cast<uint8_t>(text[at]));
    if (lead.length == 0) continue;
    const bool could_continue =
        lead.length > static_cast<int>(back) && valid_bytes(text, at, lead) == static_cast<int>(back);
    return could_continue ? at : text.size();
  }
  return text.size();
}

void append_utf8(std::string& out, uint32_t c) {
  const auto put = [&out](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string clipped(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return std::string(text);
  return std::string(text.substr(0, complete_utf8_prefix(text.substr(0, most_bytes)))) + "...";
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = decode_utf8(text, at);
    append_utf8(out, c.value);
    const LeadByte lead = classify(static_cast<uint8_t>(text[at]));
    at += c.valid || lead.length == 0 ? c.length : static_cast<size_t>(valid_bytes(text, at, lead));
  }
  return out;
}

}  // namespace candor
