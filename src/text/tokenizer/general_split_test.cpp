#include "text/tokenizer/general_split.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "formats/safetensors/tokenizer_splits.h"
#include "support/memory_model_file.h"
#include "text/tokenizer/split_rule.h"

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;
using testing::MemoryModelFile;

// The expressions of a rule that has a scanner, as steps for the engine.
std::vector<std::string> steps_of(const char* name) {
  MemoryModelFile file;
  file.set_string("tokenizer.ggml.pre", name);
  const auto written = formats::safetensors::split_json(file);
  std::vector<std::string> steps;
  if (!written || !*written) return steps;
  const Json& words = (**written)["pre_tokenizer"];
  const Json list = words.contains("pretokenizers") ? words["pretokenizers"] : Json::array({words});
  for (const Json& step : list) {
    if (step["type"] != "Split") continue;
    steps.insert(steps.end(), {"isolated", "", step["pattern"]["Regex"].get<std::string>()});
  }
  return steps;
}

std::string random_text(std::mt19937& random) {
  constexpr std::string_view kParts[] = {" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "'\u017f", "a", "B", "\u01c5", "\u0301",
                                         "12", "345", "\u00b2", "!", "/", ".,", "\u4f60\u597d", "\u304b", "\ud55c", "\u00a0"};
  std::string text;
  for (size_t i = random() % 40; i > 0; --i) {
    if (random() % 4 != 0) {
      text += kParts[random() % std::size(kParts)];
    } else {
      const auto point = static_cast<uint32_t>(random() % (random() % 2 == 0 ? 0x3000 : 0x20000));
      append_utf8(text, point >= 0xD800 && point < 0xE000 ? ' ' : point);
    }
  }
  return text;
}

GeneralSplit open(const std::vector<std::string>& steps) {
  MemoryModelFile file;
  file.set_strings("tokenizer.candor.splits", steps);
  auto split = GeneralSplit::from_model_file(file);
  EXPECT_TRUE(split) << split.error().message;
  return std::move(**split);
}

std::string refusal(const std::vector<std::string>& steps) {
  MemoryModelFile file;
  file.set_strings("tokenizer.candor.splits", steps);
  const auto split = GeneralSplit::from_model_file(file);
  return split ? "" : split.error().message;
}

TEST(general_split, cuts_as_the_scanners_do) {
  for (const char* name : {"dbrx", "qwen2", "qwen35", "gpt-4o", "tekken", "kimi-k2", "bloom", "deepseek-v3"}) {
    const std::vector<std::string> steps = steps_of(name);
    ASSERT_FALSE(steps.empty()) << name;
    const GeneralSplit split = open(steps);
    std::mt19937 random(5);
    for (int round = 0; round < 2000; ++round) {
      const std::string text = random_text(random);
      std::vector<std::string_view> expected;
      size_t at = 0;
      for (const size_t n_bytes : split_words(*find_pre_tokenizer(name)->rule, text)) {
        expected.push_back(std::string_view(text).substr(at, n_bytes));
        at += n_bytes;
      }
      uint64_t budget = GeneralSplit::budget_of(text);
      const auto words = split.words_of(text, budget);
      ASSERT_TRUE(words) << words.error().message;
      ASSERT_EQ(*words, expected) << name << ": " << text;
    }
  }
}

TEST(general_split, refuses_what_it_does_not_know_by_name) {
  EXPECT_EQ(refusal({"isolated", "", "a"}), "");
  EXPECT_NE(refusal({"isolated", ""}).find("three a step"), std::string::npos);
  EXPECT_NE(refusal({"halved", "", "a"}).find("halved"), std::string::npos);
  EXPECT_NE(refusal({"isolated", "upside", "a"}).find("upside"), std::string::npos);
  EXPECT_NE(refusal({"isolated", "", "(a"}).find("damaged at byte 2"), std::string::npos) << refusal({"isolated", "", "(a"});
  EXPECT_NE(refusal({"isolated", "", "(a)\\1"}).find("not known here"), std::string::npos);
}

TEST(general_split, refuses_a_text_that_takes_too_much_work) {
  const std::string text(200'000, 'a');
  uint64_t budget = GeneralSplit::budget_of(text);
  const auto words = open({"isolated", "", "a++b"}).words_of(text, budget);
  ASSERT_FALSE(words);
  EXPECT_EQ(words.error().message.find('\n'), std::string::npos);
  EXPECT_NE(words.error().message.find("takes more work"), std::string::npos) << words.error().message;
}

}  // namespace
}  // namespace candor::text
