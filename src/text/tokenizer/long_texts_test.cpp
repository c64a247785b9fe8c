// A megabyte of what is worst for each part of the way from text to tokens and back, with vocabularies made for it:
// time is linear whatever a model file and a client do together.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "support/small_stack.h"
#include "support/thread_time.h"
#include "text/detokenizer.h"
#include "text/small_vocabularies.h"
#include "text/stop_strings.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {
namespace {

using candor::testing::kSecondsAMegabyte;
using candor::testing::MemoryModelFile;
using candor::testing::run_on_small_stack;
using candor::testing::SmallVocabulary;
using candor::testing::thread_seconds;

#ifdef CANDOR_SANITIZED
constexpr size_t kTextBytes = size_t{1} << 16;
#else
constexpr size_t kTextBytes = size_t{1} << 20;
#endif

std::string text_of(std::string_view unit, size_t n_bytes = kTextBytes) {
  std::string text;
  while (text.size() < n_bytes) text += unit;
  return text;
}

std::string letters(size_t n) { return std::string(n, 'a'); }

// Bytes as every model has them, then what the test adds.
MemoryModelFile byte_pairs(const std::vector<std::string>& pieces, const std::vector<std::string>& merges,
                           int64_t type = candor::testing::kNormalType) {
  SmallVocabulary vocabulary;
  for (const uint32_t c : byte_alphabet()) {
    std::string name;
    append_utf8(name, c);
    vocabulary.add(name);
  }
  for (const std::string& piece : pieces) vocabulary.add(piece, type);
  MemoryModelFile file;
  vocabulary.write_to(file, "gpt2");
  file.set_strings("tokenizer.ggml.merges", merges);
  file.set_string("tokenizer.ggml.pre", "gpt-2");
  return file;
}

// "llama" or "t5" with an unknown token, the letter a, and the pieces.
MemoryModelFile characters(const std::string& model, const std::vector<std::string>& pieces,
                           const std::function<double(const std::string&)>& score) {
  SmallVocabulary vocabulary;
  vocabulary.add("<unk>", candor::testing::kUnknownType);
  vocabulary.add("a", candor::testing::kNormalType, -1.0);
  for (const std::string& piece : pieces) vocabulary.add(piece, candor::testing::kNormalType, score(piece));
  MemoryModelFile file;
  vocabulary.write_to(file, model);
  file.set_floats("tokenizer.ggml.scores", vocabulary.scores);
  file.set("tokenizer.ggml.add_bos_token", false);
  file.set("tokenizer.ggml.add_space_prefix", false);
  return file;
}

std::vector<std::string> runs_of_letters(size_t from, size_t to) {
  std::vector<std::string> runs;
  for (size_t n = from; n <= to; ++n) runs.push_back(letters(n));
  return runs;
}

std::unique_ptr<Tokenizer> opened(const MemoryModelFile& file) {
  auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

// Within the bound, on a small stack, and nothing of the text is lost.
void expect_linear(const MemoryModelFile& file, const std::string& text, EncodeOptions options, const char* what) {
  const auto tokenizer = opened(file);
  if (tokenizer == nullptr) return;
  options.add_special = false;
  run_on_small_stack([&] {
    const double begin = thread_seconds();
    const auto tokens = tokenizer->encode(text, options);
    ASSERT_TRUE(tokens) << what << ": " << tokens.error().message;
    const std::string back = detokenize(*tokenizer, *tokens, true);
    EXPECT_LT(thread_seconds() - begin, kSecondsAMegabyte) << what;
    EXPECT_FALSE(tokens->empty()) << what;
    const bool is_exact = !options.parse_special && file.meta("tokenizer.candor.normalizer") == nullptr &&
                          back.find("\u2047") == std::string::npos;
    EXPECT_TRUE(!is_exact || back == text) << what;
  });
}

TEST(long_texts, special_tokens_with_shared_beginnings_are_found_in_linear_time) {
  std::vector<std::string> pieces = {letters(1023) + "b", letters(900) + "c"};
  for (const std::string& run : runs_of_letters(600, 700)) pieces.push_back(run + "d");
  for (const int64_t type : {candor::testing::kUserType, candor::testing::kControlType}) {
    const MemoryModelFile file = byte_pairs(pieces, {}, type);
    expect_linear(file, text_of("a"), {.parse_special = true}, "beginnings of special tokens");
    expect_linear(file, text_of("a") + "b", {}, "beginnings of special tokens, not parsed");
  }
  std::vector<size_t> breaks;
  for (size_t at = 0; at < kTextBytes; at += 2) breaks.push_back(at);
  const MemoryModelFile nested = byte_pairs(runs_of_letters(2, 500), {}, candor::testing::kControlType);
  expect_linear(nested, text_of("a"), {.parse_special = true, .breaks = breaks}, "nested ones between breaks");
  expect_linear(nested, text_of("a"), {.parse_special = true}, "nested ones");
}

TEST(long_texts, merges_of_one_word_take_linear_time) {
  std::vector<std::string> forwards, backwards, doubled;
  for (size_t n = 2; n <= 700; ++n) {
    forwards.push_back(letters(n - 1) + " a");
    backwards.push_back("a " + letters(n - 1));
  }
  std::vector<std::string> doubles;
  for (size_t n = 1; n <= 8192; n *= 2) {
    doubles.push_back(letters(2 * n));
    doubled.push_back(letters(n) + " " + letters(n));
  }
  expect_linear(byte_pairs(runs_of_letters(2, 700), forwards), text_of("a"), {}, "growing to the right");
  expect_linear(byte_pairs(runs_of_letters(2, 700), backwards), text_of("a"), {}, "growing to the left");
  expect_linear(byte_pairs(doubles, doubled), text_of("a"), {}, "doubling");
  std::ranges::reverse(doubled);
  expect_linear(byte_pairs(doubles, doubled), text_of("a"), {}, "doubling, the last first");
}

TEST(long_texts, merges_by_score_take_linear_time) {
  const std::vector<std::string> runs = runs_of_letters(2, 1000);
  const auto rising = [](const std::string& piece) { return static_cast<double>(piece.size()); };
  const auto falling = [](const std::string& piece) { return -static_cast<double>(piece.size()); };
  expect_linear(characters("llama", runs, rising), text_of("a"), {}, "longer pieces first");
  expect_linear(characters("llama", runs, falling), text_of("a"), {}, "shorter pieces first");
  expect_linear(characters("llama", {}, falling), text_of("\U0010FFFF"), {}, "unknown characters");
  expect_linear(candor::testing::small_sentence_piece(), text_of("\U0010FFFF"), {}, "bytes");
}

TEST(long_texts, the_best_pieces_are_found_in_linear_time) {
  std::vector<std::string> pieces = runs_of_letters(2, 256);
  pieces.push_back(letters(1023) + "b");
  const auto score = [](const std::string& piece) { return -static_cast<double>(piece.size()); };
  expect_linear(characters("t5", pieces, score), text_of("a"), {}, "nested pieces");
  expect_linear(characters("t5", pieces, score), text_of(letters(255) + "\u00E9"), {}, "nested pieces and unknowns");
  expect_linear(candor::testing::small_unigram(), text_of("\xFF"), {}, "bytes");
}

TEST(long_texts, normaliser_steps_take_linear_time) {
  const std::string almost = letters(1023) + "b";
  const std::vector<std::vector<std::string>> steps = {
      {"nfc", "", ""},      {"nfd", "", ""},        {"nfkc", "", ""},         {"nfkd", "", ""},
      {"nmt", "", ""},      {"lowercase", "", ""},  {"strip", "both", ""},    {"prepend", almost, ""},
      {"squeeze", "x", ""}, {"replace", almost, "x"}, {"replace", "a", "aaaa"}};
  std::vector<std::string> texts;
  for (const char* unit : {"a", " ", "\u0301\u0316", " a  ", "\u1E69\u0344", "\U0001F600"}) {
    texts.push_back(text_of(unit, kTextBytes / 4));
  }
  for (const std::vector<std::string>& step : steps) {
    MemoryModelFile file = candor::testing::small_bpe();
    file.set_strings("tokenizer.candor.normalizer", step);
    for (const std::string& text : texts) {
      if (step[0] == "strip" && text[0] == ' ') continue;  // nothing is left of it
      expect_linear(file, text, {}, step[0].c_str());
    }
  }
}

TEST(long_texts, a_normaliser_cannot_make_memory_of_a_short_text) {
  MemoryModelFile file = candor::testing::small_bpe();
  const std::string much(1024, 'b');
  file.set_strings("tokenizer.candor.normalizer", {"replace", "a", much, "replace", "b", much, "replace", "b", much});
  const auto grown = opened(file)->encode(text_of("a", 4096), {});
  ASSERT_FALSE(grown);
  EXPECT_NE(grown.error().message.find("more than 16 times as long"), std::string::npos) << grown.error().message;
  file.set_strings("tokenizer.candor.normalizer", {"prepend", much, ""});
  EXPECT_FALSE(opened(file)->encode(text_of("a<think>", 100'000), {}));
  file.set_strings("tokenizer.candor.normalizer", {"replace", "a", much + "b"});
  EXPECT_FALSE(Tokenizer::from_model_file(file));
  std::vector<std::string> many;
  for (int i = 0; i < 65; ++i) many.insert(many.end(), {"nfc", "", ""});
  file.set_strings("tokenizer.candor.normalizer", many);
  EXPECT_FALSE(Tokenizer::from_model_file(file));
}

TEST(long_texts, pieces_that_would_make_it_quadratic_are_refused) {
  const auto score = [](const std::string&) { return -1.0; };
  for (const char* model : {"llama", "t5"}) {
    const auto refused = Tokenizer::from_model_file(characters(model, {letters(1025)}, score));
    ASSERT_FALSE(refused) << model;
    EXPECT_NE(refused.error().message.find("a piece of 1025 bytes, at most 1024"), std::string::npos);
  }
  const auto nested = Tokenizer::from_model_file(characters("t5", runs_of_letters(2, 257), score));
  ASSERT_FALSE(nested);
  EXPECT_NE(nested.error().message.find("257 pieces end the piece"), std::string::npos) << nested.error().message;
}

TEST(long_texts, stop_strings_are_searched_for_in_linear_time) {
  std::vector<std::string> stops;
  for (size_t i = 0; i < 16; ++i) stops.push_back(letters(255 - i) + "b");
  run_on_small_stack([&] {
    StopStrings search(stops);
    const double begin = thread_seconds();
    size_t n_shown = 0;
    for (size_t i = 0; i < kTextBytes; ++i) n_shown += search.push("a").text.size();
    n_shown += search.finish().size();
    EXPECT_EQ(n_shown, kTextBytes);
    EXPECT_LT(thread_seconds() - begin, kSecondsAMegabyte);
  });
}

TEST(long_texts, bytes_that_are_no_text_are_shown_in_linear_time) {
  const auto tokenizer = opened(candor::testing::small_bpe());
  run_on_small_stack([&] {
    for (const std::string unit : {"\xFF", "\xE2\x82", "\xF0\x9F\x98\x80"}) {
      const auto tokens = tokenizer->encode(text_of(unit), {.add_special = false});
      ASSERT_TRUE(tokens);
      Detokenizer output(*tokenizer, true);
      const double begin = thread_seconds();
      size_t n_shown = 0;
      for (const TokenId token : *tokens) n_shown += output.push(token).size();
      EXPECT_GT(n_shown + output.finish().size(), 0u);
      EXPECT_LT(thread_seconds() - begin, kSecondsAMegabyte);
    }
  });
}

}  // namespace
}  // namespace candor::text
