#pragma once
// What Unicode 15.1 and 16 added to the characters that utf8proc 2.8 knows (Unicode 15), as the `tokenizers` library
// has it. Made by tests/text/make_unicode_cases.py later; sorted, and both ends belong to a range.

#include <array>
#include <cstdint>

#include "text/tokenizer/char_class.h"

namespace candor::text {

struct CategoryRange {
  uint32_t first;
  uint32_t last;  // inclusive
  uint32_t flags;
};

constexpr std::array<CategoryRange, 77> kLaterCategories = {{
    {0x0897, 0x0897, kMark | kWordChar},
    {0x1B4E, 0x1B4F, kPunctuation},
    {0x1B7F, 0x1B7F, kPunctuation},
    {0x1C89, 0x1C89, kUpper | kWordChar},
    {0x1C8A, 0x1C8A, kLower | kWordChar},
    {0x2427, 0x2429, kSymbol},
    {0x2FFC, 0x2FFF, kSymbol},
    {0x31E4, 0x31E5, kSymbol},
    {0x31EF, 0x31EF, kSymbol},
    {0xA7CB, 0xA7CC, kUpper | kWordChar},
    {0xA7CD, 0xA7CD, kLower | kWordChar},
    {0xA7DA, 0xA7DA, kUpper | kWordChar},
    {0xA7DB, 0xA7DB, kLower | kWordChar},
    {0xA7DC, 0xA7DC, kUpper | kWordChar},
    {0x105C0, 0x105F3, kOtherLetter | kWordChar},
    {0x10D40, 0x10D49, kNumber | kDecimal | kWordChar},
    {0x10D4A, 0x10D4D, kOtherLetter | kWordChar},
    {0x10D4E, 0x10D4E, kModifier | kWordChar},
    {0x10D4F, 0x10D4F, kOtherLetter | kWordChar},
    {0x10D50, 0x10D65, kUpper | kWordChar},
    {0x10D69, 0x10D6D, kMark | kWordChar},
    {0x10D6E, 0x10D6E, kPunctuation},
    {0x10D6F, 0x10D6F, kModifier | kWordChar},
    {0x10D70, 0x10D85, kLower | kWordChar},
    {0x10D8E, 0x10D8F, kSymbol},
    {0x10EC2, 0x10EC4, kOtherLetter | kWordChar},
    {0x10EFC, 0x10EFC, kMark | kWordChar},
    {0x11380, 0x11389, kOtherLetter | kWordChar},
    {0x1138B, 0x1138B, kOtherLetter | kWordChar},
    {0x1138E, 0x1138E, kOtherLetter | kWordChar},
    {0x11390, 0x113B5, kOtherLetter | kWordChar},
    {0x113B7, 0x113B7, kOtherLetter | kWordChar},
    {0x113B8, 0x113C0, kMark | kWordChar},
    {0x113C2, 0x113C2, kMark | kWordChar},
    {0x113C5, 0x113C5, kMark | kWordChar},
    {0x113C7, 0x113CA, kMark | kWordChar},
    {0x113CC, 0x113D0, kMark | kWordChar},
    {0x113D1, 0x113D1, kOtherLetter | kWordChar},
    {0x113D2, 0x113D2, kMark | kWordChar},
    {0x113D3, 0x113D3, kOtherLetter | kWordChar},
    {0x113D4, 0x113D5, kPunctuation},
    {0x113D7, 0x113D8, kPunctuation},
    {0x113E1, 0x113E2, kMark | kWordChar},
    {0x116D0, 0x116E3, kNumber | kDecimal | kWordChar},
    {0x11BC0, 0x11BE0, kOtherLetter | kWordChar},
    {0x11BE1, 0x11BE1, kPunctuation},
    {0x11BF0, 0x11BF9, kNumber | kDecimal | kWordChar},
    {0x11F5A, 0x11F5A, kMark | kWordChar},
    {0x13460, 0x143FA, kOtherLetter | kWordChar},
    {0x16100, 0x1611D, kOtherLetter | kWordChar},
    {0x1611E, 0x1612F, kMark | kWordChar},
    {0x16130, 0x16139, kNumber | kDecimal | kWordChar},
    {0x16D40, 0x16D42, kModifier | kWordChar},
    {0x16D43, 0x16D6A, kOtherLetter | kWordChar},
    {0x16D6B, 0x16D6C, kModifier | kWordChar},
    {0x16D6D, 0x16D6F, kPunctuation},
    {0x16D70, 0x16D79, kNumber | kDecimal | kWordChar},
    {0x18CFF, 0x18CFF, kOtherLetter | kWordChar},
    {0x1CC00, 0x1CCEF, kSymbol},
    {0x1CCF0, 0x1CCF9, kNumber | kDecimal | kWordChar},
    {0x1CD00, 0x1CEB3, kSymbol},
    {0x1E5D0, 0x1E5ED, kOtherLetter | kWordChar},
    {0x1E5EE, 0x1E5EF, kMark | kWordChar},
    {0x1E5F0, 0x1E5F0, kOtherLetter | kWordChar},
    {0x1E5F1, 0x1E5FA, kNumber | kDecimal | kWordChar},
    {0x1E5FF, 0x1E5FF, kPunctuation},
    {0x1F8B2, 0x1F8BB, kSymbol},
    {0x1F8C0, 0x1F8C1, kSymbol},
    {0x1FA89, 0x1FA89, kSymbol},
    {0x1FA8F, 0x1FA8F, kSymbol},
    {0x1FABE, 0x1FABE, kSymbol},
    {0x1FAC6, 0x1FAC6, kSymbol},
    {0x1FADC, 0x1FADC, kSymbol},
    {0x1FADF, 0x1FADF, kSymbol},
    {0x1FAE9, 0x1FAE9, kSymbol},
    {0x1FBCB, 0x1FBEF, kSymbol},
    {0x2EBF0, 0x2EE5D, kOtherLetter | kWordChar},
}};

}  // namespace candor::text
