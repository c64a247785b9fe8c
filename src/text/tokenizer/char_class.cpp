#include "text/tokenizer/char_class.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/utf8.h"
#include "text/tokenizer/code_point_ranges.h"
#include "text/tokenizer/later_categories.h"

namespace candor::text {
namespace {

uint32_t later_category(uint32_t c) {
  const auto* after = std::ranges::upper_bound(kLaterCategories, c, {}, &CategoryRange::first);
  const bool is_known = after != kLaterCategories.begin() && c <= std::prev(after)->last;
  return is_known ? std::prev(after)->flags : kNoCategory;
}

uint32_t category_flags(uint32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
      return kUpper | kWordChar;
    case UTF8PROC_CATEGORY_LT:
      return kTitle | kWordChar;
    case UTF8PROC_CATEGORY_LL:
      return kLower | kWordChar;
    case UTF8PROC_CATEGORY_LM:
      return kModifier | kWordChar;
    case UTF8PROC_CATEGORY_LO:
      return kOtherLetter | kWordChar;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWordChar;
    case UTF8PROC_CATEGORY_ND:
      return kNumber | kDecimal | kWordChar;
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWordChar;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunctuation | kWordChar;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return later_category(code_point);
  }
}

// The letters in circles and squares are symbols to which Unicode gives the property Alphabetic; the superscript digits
// and the fractions of Latin-1 are what Oniguruma's \w has beyond it.
bool is_word_symbol(uint32_t c) {
  constexpr std::array<CodePointRange, 7> kRanges = {{{0xB2, 0xB3},
                                                      {0xB9, 0xB9},
                                                      {0xBC, 0xBE},
                                                      {0x24B6, 0x24E9},
                                                      {0x1F130, 0x1F149},
                                                      {0x1F150, 0x1F169},
                                                      {0x1F170, 0x1F189}}};
  return contains(kRanges, c);
}

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_stop(uint32_t c) {
  constexpr std::array<uint32_t, 13> kStops = {'(',    ')',    '|',    '.',    ',',    '!',   '?',
                                               0x2026, 0x3002, 0xFF0C, 0x3001, 0x0964, 0x06D4};
  return c == 0x060C || std::find(kStops.begin(), kStops.end(), c) != kStops.end();
}

uint32_t ascii_flags(uint32_t c) {
  uint32_t flags = 0;
  if (c == ' ') flags |= kBlank;
  if (c == '\r' || c == '\n') flags |= kLineEnd;
  if (c == '/') flags |= kSlash;
  if (c == '`') flags |= kBacktick;
  if (c >= '0' && c <= '9') flags |= kAsciiDigit;
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) flags |= kAsciiLetter;
  if (c > ' ' && c < 0x7F && (flags & (kAsciiDigit | kAsciiLetter)) == 0) flags |= kAsciiPunctuation;
  if (std::string_view("$+<=>^~|").find(static_cast<char>(c)) != std::string_view::npos) flags |= kMathPunctuation;
  return flags;
}

uint32_t basic_flags(uint32_t c) {
  uint32_t flags = category_flags(c) | kAny;
  if (is_white_space(c)) flags |= kSpace;
  if (is_word_stop(c)) flags |= kWordStop;
  if (c >= 0x80 && is_word_symbol(c)) flags |= kWordChar;
  if (c < 0x80) flags |= ascii_flags(c);
  return flags;
}

bool is_wide_punctuation(uint32_t c) {
  constexpr std::array<CodePointRange, 6> kRanges = {
      {{0x21, 0x2F}, {0x3A, 0x7E}, {0x2018, 0x201F}, {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}}};
  return contains(kRanges, c);
}

uint32_t script_flags(uint32_t c) {
  uint32_t flags = 0;
  if (contains(kHanRanges, c)) flags |= kHan;
  if ((c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF)) flags |= kIdeographKana;
  if ((c >= 0x0800 && c <= 0x9FA5) || (c >= 0xAC00 && c <= 0xD7FF)) flags |= kEastAsian;
  if (contains(kCasedLetterRanges, c)) flags |= kCasedLetter;
  if (is_wide_punctuation(c)) flags |= kWidePunctuation;
  return flags;
}

std::array<uint32_t, 128> make_ascii_table(bool with_scripts) {
  std::array<uint32_t, 128> table{};
  for (uint32_t c = 0; c < table.size(); ++c) table[c] = basic_flags(c) | (with_scripts ? script_flags(c) : 0);
  return table;
}

const std::array<uint32_t, 128>& ascii_table(bool with_scripts) {
  static const std::array basic = make_ascii_table(false);
  static const std::array all = make_ascii_table(true);
  return with_scripts ? all : basic;
}

}  // namespace

void classify(std::string_view text, bool with_scripts, std::vector<Character>& out) {
  const std::array<uint32_t, 128>& ascii = ascii_table(with_scripts);
  out.clear();
  for (size_t at = 0; at < text.size();) {
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    if (byte < 0x80) {
      out.push_back({byte, ascii[byte], 1});
      ++at;
      continue;
    }
    const CodePoint decoded = decode_utf8(text, at);
    if (decoded.valid) {
      const uint32_t flags = basic_flags(decoded.value) | (with_scripts ? script_flags(decoded.value) : 0);
      out.push_back({decoded.value, flags, decoded.length});
    } else {
      out.push_back({byte, kNoCategory | kAny, 1});
    }
    at += decoded.length;
  }
}

size_t white_space_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint point = decode_utf8(text, at);
    if (!point.valid || !is_white_space(point.value)) break;
    at += point.length;
  }
  return at;
}

size_t white_space_suffix(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t at = begin - 1;
    while (at > 0 && begin - at < kMaxSpaceBytes && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
    const CodePoint point = decode_utf8(text, at);
    if (!point.valid || at + point.length != begin || !is_white_space(point.value)) break;
    begin = at;
  }
  return text.size() - begin;
}

}  // namespace candor::text
