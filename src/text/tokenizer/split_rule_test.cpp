#include "text/tokenizer/split_rule.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <string>

#include "formats/json_text.h"
#include "support/shared_data.h"
#include "support/small_stack.h"
#include "support/thread_time.h"

namespace candor::text {
namespace {

using Strings = std::vector<std::string>;

Strings words(std::string_view pre, std::string_view text) {
  const PreTokenizer* const known = find_pre_tokenizer(pre);
  if (known == nullptr) return {"unknown"};
  Strings result;
  for (const size_t n : split_words(*known->rule, text)) {
    result.emplace_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return result;
}

TEST(split_rule, gpt2_keeps_one_blank_before_a_word) {
  EXPECT_EQ(words("gpt-2", "Hello  world's 123!? "), (Strings{"Hello", " ", " world", "'s", " 123", "!?", " "}));
  EXPECT_EQ(words("gpt-2", "a\tb\n\n c'S"), (Strings{"a", "\t", "b", "\n\n", " c", "'", "S"}));
}

TEST(split_rule, llama3_takes_three_digits_and_line_ends_with_punctuation) {
  EXPECT_EQ(words("llama-bpe", "1234567 (x)\n\n y'LL"), (Strings{"123", "456", "7", " (", "x", ")\n\n", " y", "'LL"}));
  EXPECT_EQ(words("llama-bpe", "a  \n  b"), (Strings{"a", "  \n", " ", " b"}));
}

TEST(split_rule, qwen2_takes_single_digits) {
  EXPECT_EQ(words("qwen2", "a12\u00BD.b"), (Strings{"a", "1", "2", "\u00BD", ".b"}));
  EXPECT_EQ(words("qwen35", "e\u0301x"), (Strings{"e\u0301x"}));
  EXPECT_EQ(words("qwen2", "e\u0301x"), (Strings{"e", "\u0301x"}));
}

TEST(split_rule, starcoder_isolates_digits_and_falcon_takes_them_by_three) {
  EXPECT_EQ(words("starcoder", " 12a"), (Strings{" ", "1", "2", "a"}));
  EXPECT_EQ(words("falcon", "1234,a`"), (Strings{"123", "4", ",", "a", "`"}));
  EXPECT_EQ(words("default", " 12"), (Strings{" ", "12"}));
}

TEST(split_rule, gpt4o_cuts_where_a_capital_follows_small_letters) {
  EXPECT_EQ(words("gpt-4o", "camelCaseABCd don't"), (Strings{"camel", "Case", "ABCd", " don't"}));
  EXPECT_EQ(words("gpt-4o", "1234a/\n"), (Strings{"123", "4", "a", "/\n"}));
  EXPECT_EQ(words("tekken", "don't12"), (Strings{"don", "'t", "1", "2"}));
  EXPECT_EQ(words("gpt-4o", "\u00AAAA"), (Strings{"\u00AA", "AA"}));
}

TEST(split_rule, deepseek_rules_cut_in_stages) {
  EXPECT_EQ(words("deepseek-coder", " ab12\n\u4F60x.."), (Strings{" ab", "1", "2", "\n", "\u4F60", "x", ".."}));
  EXPECT_EQ(words("deepseek-llm", "ab  12 \u4F60\u597Dx "), (Strings{"ab", "  ", "12", " ", "\u4F60\u597D", "x", " "}));
  EXPECT_EQ(words("deepseek-v3", "1234\u4F60\u597D #abc x"), (Strings{"123", "4", "\u4F60\u597D", " #", "abc", " x"}));
  EXPECT_EQ(words("deepseek-v3", "x#abc"), (Strings{"x", "#abc"}));
}

TEST(split_rule, digits_are_grouped_from_the_right_where_the_rule_says_so) {
  EXPECT_EQ(words("tiny_aya", "1234567"), (Strings{"1", "234", "567"}));
  EXPECT_EQ(words("tiny_aya", "1234x"), (Strings{"123", "4", "x"}));
}

TEST(split_rule, kimi_keeps_han_apart) {
  EXPECT_EQ(words("kimi-k2", "\u4F60\u597DgetName"), (Strings{"\u4F60\u597D", "get", "Name"}));
}

// CANDOR_SPLIT_CASES names another file of cases.
TEST(split_rule, gives_the_words_of_the_library) {
  const char* other = std::getenv("CANDOR_SPLIT_CASES");
  const auto path = other != nullptr ? std::filesystem::path(other)
                                     : candor::testing::project_file("tests/text/split_cases.json");
  const auto rules = formats::read_json_file(path, size_t{1} << 30);
  ASSERT_TRUE(rules) << rules.error().message;
  for (const auto& [name, cases] : rules->items()) {
    size_t n_different = 0;
    for (const auto& one : cases) {
      const Strings ours = words(name, one[0].get<std::string>());
      if (ours == one[1].get<Strings>() || ++n_different > 2) continue;
      ADD_FAILURE() << name << ": " << one.dump(-1, ' ', true) << " ours " << nlohmann::json(ours).dump(-1, ' ', true);
    }
    EXPECT_EQ(n_different, 0u) << name << " of " << cases.size();
  }
}

TEST(split_rule, every_name_covers_every_text_without_gaps) {
  std::mt19937 random(17);
  for (const PreTokenizer& pre : pre_tokenizers()) {
    for (int round = 0; round < 50; ++round) {
      std::string text(random() % 50, ' ');
      for (char& c : text) c = random() % 2 == 0 ? static_cast<char>(random()) : " \n'sa1.A\xC3\xA9"[random() % 10];
      const std::vector<size_t> lengths = split_words(*pre.rule, text);
      EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), size_t{0}), text.size()) << pre.name;
      EXPECT_EQ(std::count(lengths.begin(), lengths.end(), size_t{0}), 0) << pre.name;
    }
  }
}

TEST(split_rule, names_are_sorted_and_single) {
  for (size_t i = 1; i < pre_tokenizers().size(); ++i) {
    EXPECT_LT(pre_tokenizers()[i - 1].name, pre_tokenizers()[i].name);
  }
}

// A quadratic rule takes seconds for each of these texts.
TEST(split_rule, long_runs_of_one_kind_are_cut_in_linear_time) {
  candor::testing::run_on_small_stack([] {
    for (const PreTokenizer& pre : pre_tokenizers()) {
      if (pre.rule->name != pre.name && pre.name != "llama-bpe") continue;
      const double begin = candor::testing::thread_seconds();
      for (const char* unit : {" ", "\n", "a", "A", "1", ".", "\u00AA", "  a", "\u4F60", "'", "\u0301", "\xFF"}) {
        std::string text;
        while (text.size() < 150'000) text += unit;
        text += "x";
        EXPECT_FALSE(split_words(*pre.rule, text).empty());
      }
      EXPECT_LT(candor::testing::thread_seconds() - begin, candor::testing::kSecondsAMegabyte) << pre.name;
    }
  });
}

}  // namespace
}  // namespace candor::text
