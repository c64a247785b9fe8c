#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "text/small_vocabularies.h"

namespace candor::text {
namespace {

std::unique_ptr<Tokenizer> open_tokenizer(const candor::testing::MemoryModelFile& file) {
  auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

TEST(detokenizer, holds_back_half_a_code_point) {
  const auto tokenizer = open_tokenizer(candor::testing::small_bpe());
  Detokenizer output(*tokenizer, true);
  EXPECT_EQ(output.push(0xF0), "");
  EXPECT_EQ(output.push(0x9F), "");
  EXPECT_EQ(output.push(0x98), "");
  EXPECT_EQ(output.push(0x80), "\U0001F600");
  EXPECT_EQ(output.push('a'), "a");
  EXPECT_EQ(output.push(0xC3), "");
  EXPECT_EQ(output.finish(), "\uFFFD");
}

TEST(detokenizer, bytes_that_never_become_valid_are_replaced) {
  const auto tokenizer = open_tokenizer(candor::testing::small_bpe());
  Detokenizer output(*tokenizer, true);
  EXPECT_EQ(output.push(0xFF), "\uFFFD");
  EXPECT_EQ(output.push(0xC3), "");
  EXPECT_EQ(output.push('x'), "\uFFFDx");
}

TEST(detokenizer, drops_the_space_that_the_tokenizer_put_first_and_no_other) {
  const auto tokenizer = open_tokenizer(candor::testing::small_sentence_piece());
  const TokenId word = *tokenizer->find("\u2581hello");
  Detokenizer first(*tokenizer, true);
  EXPECT_EQ(first.push(tokenizer->special().bos), "");
  EXPECT_EQ(first.push(word), "hello");
  EXPECT_EQ(first.push(word), " hello");
  Detokenizer later(*tokenizer, false);
  EXPECT_EQ(later.push(word), " hello");
}

TEST(detokenizer, a_stream_shows_what_the_whole_sequence_says) {
  std::mt19937 random(29);
  for (const auto& tokenizer :
       {open_tokenizer(candor::testing::small_bpe()), open_tokenizer(candor::testing::small_sentence_piece())}) {
    for (int round = 0; round < 2000; ++round) {
      std::vector<TokenId> tokens(random() % 12);
      const uint32_t n_vocab = static_cast<uint32_t>(tokenizer->n_vocab());
      for (TokenId& id : tokens) id = static_cast<TokenId>(random() % n_vocab);
      Detokenizer output(*tokenizer, true);
      std::string text;
      for (const TokenId id : tokens) {
        const std::string shown = output.push(id);
        EXPECT_EQ(first_invalid_utf8(shown), shown.size());
        text += shown;
      }
      text += output.finish();
      EXPECT_EQ(text, to_valid_utf8(detokenize(*tokenizer, tokens, true)));
    }
  }
}

}  // namespace
}  // namespace candor::text
