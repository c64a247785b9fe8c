#include "text/tokenizer/normal_form.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/utf8.h"
#include "formats/json_text.h"
#include "support/shared_data.h"
#include "support/small_stack.h"
#include "support/thread_time.h"
#include "text/tokenizer/code_point_ranges.h"

namespace candor::text {
namespace {

constexpr NormalForm kForms[] = {NormalForm::kNfc, NormalForm::kNfd, NormalForm::kNfkc, NormalForm::kNfkd};

std::string by_utf8proc(const std::string& text, NormalForm form) {
  constexpr int kOptions[] = {UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE, UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                              UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  utf8proc_uint8_t* mapped = nullptr;
  const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                              static_cast<utf8proc_ssize_t>(text.size()), &mapped,
                              static_cast<utf8proc_option_t>(UTF8PROC_STABLE | kOptions[static_cast<size_t>(form)]));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return {reinterpret_cast<const char*>(mapped), static_cast<size_t>(n)};
}

// Letters that compose, marks of many classes in long runs, Hangul, and anything else.
uint32_t some_code_point(std::mt19937& random) {
  while (true) {
    uint32_t c = 0;
    switch (random() % 6) {
      case 0:
        c = "aeouAEOUKsy<=>"[random() % 14];
        break;
      case 1:
      case 2:
        c = 0x300 + random() % 0x70;
        break;
      case 3:
        c = (random() % 2 == 0 ? 0x1100 : 0xAC00) + random() % 0x100;
        break;
      case 4:
        c = random() % 0x3100;
        break;
      default:
        c = random() % 0x30000;
    }
    if (c != 0 && (c < 0xD800 || c > 0xDFFF) && !contains(kNormalizedLaterRanges, c)) return c;
  }
}

TEST(normal_form, is_that_of_utf8proc_for_what_it_can_do) {
  std::mt19937 random(23);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const size_t n = 1 + random() % (round % 50 == 0 ? 300 : 12);
    for (size_t i = 0; i < n; ++i) append_utf8(text, some_code_point(random));
    for (const NormalForm form : kForms) ASSERT_EQ(to_normal_form(text, form), by_utf8proc(text, form));
  }
}

TEST(normal_form, every_character_has_its_own) {
  for (uint32_t c = 1; c < 0x110000; ++c) {
    if ((c >= 0xD800 && c <= 0xDFFF) || contains(kNormalizedLaterRanges, c)) continue;
    std::string text;
    append_utf8(text, c);
    for (const NormalForm form : kForms) ASSERT_EQ(to_normal_form(text, form), by_utf8proc(text, form)) << c;
  }
}

TEST(normal_form, is_that_of_python) {
  const auto cases =
      formats::read_json_file(candor::testing::project_file("tests/text/normal_form_cases.json"), size_t{1} << 24);
  ASSERT_TRUE(cases) << cases.error().message;
  for (const auto& one : *cases) {
    for (size_t form = 0; form < 4; ++form) {
      EXPECT_EQ(to_normal_form(one[0].get<std::string>(), kForms[form]), one[form + 1].get<std::string>()) << one[0];
    }
  }
}

TEST(normal_form, later_characters_stay_and_part_the_text) {
  EXPECT_EQ(to_normal_form("a\u1ABF\u0301", NormalForm::kNfc), "a\u1ABF\u0301");
  EXPECT_EQ(to_normal_form("a\u0301\u1ABFe\u0301", NormalForm::kNfc), "\u00E1\u1ABF\u00E9");
}

// A sort by exchange of neighbours takes minutes.
TEST(normal_form, a_megabyte_of_marks_takes_linear_time_on_a_small_stack) {
  candor::testing::run_on_small_stack([] {
    const std::string kinds[] = {"\u0301", "\u0316\u0301", "\u0334\u0327\u031B\u0316\u0301\u0345", "\u0301\u0316"};
    for (const std::string& kind : kinds) {
      std::string text = "a";
      while (text.size() < size_t{1} << 20) text += kind;
      const double begin = candor::testing::thread_seconds();
      for (const NormalForm form : kForms) EXPECT_GE(to_normal_form(text, form).size(), text.size() - 4);
      EXPECT_LT(candor::testing::thread_seconds() - begin, 4 * candor::testing::kSecondsAMegabyte);
    }
  });
}

}  // namespace
}  // namespace candor::text
