// The published cases of four vocabularies, and what must hold for any bytes.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "support/shared_data.h"
#include "support/small_stack.h"
#include "support/thread_time.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

using candor::testing::run_on_small_stack;
using candor::testing::thread_seconds;

constexpr EncodeOptions kTextAlone{.add_special = false, .parse_special = false, .breaks = {}};

std::string read_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> split_cases(const std::string& text) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  std::vector<std::string> cases;
  size_t begin = 0;
  for (size_t end = text.find(separator); end != std::string::npos; end = text.find(separator, begin)) {
    cases.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  if (begin < text.size()) cases.push_back(text.substr(begin));
  return cases;
}

std::vector<std::vector<TokenId>> read_answers(const std::filesystem::path& path) {
  std::istringstream lines(read_text(path));
  std::vector<std::vector<TokenId>> answers;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream ids(line);
    answers.emplace_back();
    for (TokenId id = 0; ids >> id;) answers.back().push_back(id);
  }
  return answers;
}

struct CaseKind {
  const char* name;
  std::string unit;
};

std::vector<CaseKind> long_kinds() {
  return {{"one letter", "a"},
          {"space", " "},
          {"newline", "\n"},
          {"digit", "7"},
          {"'!'", "!"},
          {"emoji", "\U0001F600"},
          {"combining mark", "\u0301"},
          {"0xFF", "\xFF"}};
}

// Words of several scripts, digits, punctuation, line ends and bytes that are no UTF-8.
std::string mixed_text(size_t n_bytes) {
  const std::vector<std::string> parts = {"hello",    " world",  "  ",         "\n",   "\r\n",   "\t",         "don't",
                                          "1234567",  "Été",     "  привет",   "你好", "日本語", "\U0001F600", "\xC3",
                                          "\xFF\xFE", "e\u0301", "--",         " (x)", "한국어", " camelCase", "ABC",
                                          "\u00A0",   "\u200D",  "<|im_end|>", "</s>", "½"};
  std::mt19937 random(7);
  std::string text;
  while (text.size() < n_bytes) text += parts[random() % parts.size()];
  return text;
}

class exact_cases : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path path =
        candor::testing::shared_data() / "tokenizers" / (std::string(GetParam()) + ".gguf");
    CANDOR_REQUIRE_DATA(path);
    auto file = formats::open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    auto tokenizer = Tokenizer::from_model_file(**file);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
    path_ = path.string();
  }

  void expect_round_trip(const std::string& text) const {
    const std::vector<TokenId> tokens = *tokenizer_->encode(text, kTextAlone);
    const bool same = detokenize(*tokenizer_, tokens, true) == text;
    EXPECT_TRUE(same) << "a text of " << text.size() << " bytes";
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::string path_;
};

TEST_P(exact_cases, give_the_published_ids) {
  const std::vector<std::string> cases = split_cases(read_text(path_ + ".inp"));
  const std::vector<std::vector<TokenId>> answers = read_answers(path_ + ".out");
  ASSERT_EQ(cases.size(), answers.size());
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(*tokenizer_->encode(cases[i], kTextAlone), answers[i]) << "case " << i << ": " << cases[i];
    EXPECT_EQ(detokenize(*tokenizer_, answers[i], true), cases[i]) << "case " << i;
  }
}

TEST_P(exact_cases, any_bytes_come_back) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    std::string text(random() % 80, '\0');
    for (char& c : text) c = static_cast<char>(random());
    expect_round_trip(text);
  }
  for (int byte = 0; byte < 256; ++byte) expect_round_trip(std::string(1, static_cast<char>(byte)));
}

TEST_P(exact_cases, a_megabyte_of_anything_comes_back_on_a_small_stack) {
  std::vector<CaseKind> kinds = long_kinds();
  kinds.push_back({"mixed", mixed_text(1 << 16)});
#ifdef CANDOR_SANITIZED
  constexpr size_t kBytes = size_t{1} << 16;
#else
  constexpr size_t kBytes = size_t{1} << 20;
#endif
  for (const CaseKind& kind : kinds) {
    std::string text;
    while (text.size() < kBytes) text += kind.unit;
    run_on_small_stack([&] {
      const double begin = thread_seconds();
      const std::vector<TokenId> tokens = *tokenizer_->encode(text, kTextAlone);
      const double seconds = thread_seconds() - begin;
      std::cout << GetParam() << ": " << kind.name << ": " << static_cast<double>(text.size()) / 1e6 / seconds
                << " MB/s, " << tokens.size() << " tokens\n";
      const bool same = detokenize(*tokenizer_, tokens, true) == text;
      EXPECT_TRUE(same) << kind.name;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(vocabularies, exact_cases,
                         ::testing::Values("gpt-2", "deepseek-coder", "stablelm2", "llama-spm"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace candor::text
