#pragma once
// Code points as sets of properties, so that the rules that cut text into words are data: a class of characters is a
// pair of bit masks. General categories are those of Unicode 16: utf8proc's (Unicode 15) and what came later; space is
// Unicode's White_Space.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace candor::text {

// Exactly one of the categories (the first row) and kAny are set for every character.
enum CharFlag : uint32_t {
  kUpper = 1u << 0,
  kTitle = 1u << 1,
  kLower = 1u << 2,
  kModifier = 1u << 3,
  kOtherLetter = 1u << 4,
  kMark = 1u << 5,
  kNumber = 1u << 6,
  kPunctuation = 1u << 7,
  kSymbol = 1u << 8,
  kNoCategory = 1u << 9,
  kSpace = 1u << 10,
  kLineEnd = 1u << 11,  // \r \n
  kBlank = 1u << 12,    // U+0020 alone
  kSlash = 1u << 13,    // /
  kDecimal = 1u << 14,  // category Nd
  kAsciiDigit = 1u << 15,
  kAsciiLetter = 1u << 16,
  kAsciiPunctuation = 1u << 17,  // category P or S below U+0080
  kMathPunctuation = 1u << 18,   // $ + < = > ^ ~ |
  kBacktick = 1u << 19,
  kWordStop = 1u << 20,  // ( ) | and the commas and full stops that the BLOOM rule lists
  kWordChar = 1u << 21,  // what Oniguruma's \w matches: letters, marks, digits, connectors, and some symbols
  // Scripts and sets that single vocabularies name: set only when the caller of classify() asks for them.
  kHan = 1u << 22,
  kIdeographKana = 1u << 23,    // U+4E00-9FA5, hiragana, katakana (DeepSeek V3)
  kEastAsian = 1u << 24,        // U+0800-9FA5, U+AC00-D7FF (DeepSeek LLM, Coder)
  kCasedLetter = 1u << 25,      // the letters that DeepSeek LLM lists
  kWidePunctuation = 1u << 26,  // the punctuation that DeepSeek LLM lists
  kAny = 1u << 31,
};

constexpr uint32_t kCased = kUpper | kTitle | kLower;
constexpr uint32_t kLetter = kCased | kModifier | kOtherLetter;

struct Character {
  uint32_t code_point = 0;  // the byte itself where the text is not UTF-8
  uint32_t flags = 0;
  uint8_t n_bytes = 0;
};

// The characters that are in one of the sets of `any` and in none of `none`.
struct CharClass {
  uint32_t any = 0;
  uint32_t none = 0;
  constexpr bool has(uint32_t flags) const { return (flags & any) != 0 && (flags & none) == 0; }
};

constexpr CharClass in(uint32_t sets) {
  return {sets, 0};
}
constexpr CharClass not_in(uint32_t sets) {
  return {kAny, sets};
}

// Replaces `out` by the characters of the text; a byte that is not UTF-8 is a character without category.
void classify(std::string_view text, bool with_scripts, std::vector<Character>& out);

// Bytes of the White_Space characters that the text begins or ends with.
size_t white_space_prefix(std::string_view text);
size_t white_space_suffix(std::string_view text);
inline constexpr size_t kMaxSpaceBytes = 3;  // of the longest of them

}  // namespace candor::text
