#include "text/tokenizer/char_class.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "formats/json_text.h"
#include "support/shared_data.h"

namespace candor::text {
namespace {

struct NamedClass {
  const char* name;
  uint32_t flag;
};
constexpr NamedClass kClasses[] = {{"upper", kUpper},     {"title", kTitle},         {"lower", kLower},
                                   {"modifier", kModifier}, {"other", kOtherLetter},   {"mark", kMark},
                                   {"number", kNumber},   {"punctuation", kPunctuation}, {"symbol", kSymbol},
                                   {"space", kSpace},     {"decimal", kDecimal},     {"word", kWordChar},
                                   {"han", kHan}};

TEST(char_class, every_code_point_has_the_classes_of_the_library) {
  const auto classes =
      formats::read_json_file(candor::testing::project_file("tests/text/char_classes.json"), size_t{1} << 20);
  ASSERT_TRUE(classes) << classes.error().message;
  std::vector<uint32_t> flags(0x110000, 0);
  std::vector<Character> characters;
  for (uint32_t c = 1; c < flags.size(); ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, c);
    classify(text, true, characters);
    flags[c] = characters.at(0).flags;
  }
  for (const NamedClass& known : kClasses) {
    std::vector<bool> expected(flags.size(), false);
    const auto& ends = (*classes)[known.name];
    for (size_t i = 0; i + 1 < ends.size(); i += 2) {
      for (uint32_t c = ends[i]; c <= ends[i + 1].get<uint32_t>(); ++c) expected[c] = true;
    }
    size_t n_different = 0;
    for (uint32_t c = 1; c < flags.size(); ++c) {
      if (((flags[c] & known.flag) != 0) == expected[c]) continue;
      if (++n_different == 1) ADD_FAILURE() << known.name << " U+" << std::hex << c << " is expected " << expected[c];
    }
    EXPECT_EQ(n_different, 0u) << known.name;
  }
}

}  // namespace
}  // namespace candor::text
