// Tokenizers of GGUF files with rules of their own: merges over characters (Gemma 4), and WordPiece.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/memory_model_file.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text::small_models {
namespace {

using candor::testing::MemoryModelFile;
using Strings = std::vector<std::string>;

constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6;

MemoryModelFile file_of(const std::string& model, const Strings& tokens, const std::vector<int64_t>& kinds) {
  MemoryModelFile file;
  file.set_string("tokenizer.ggml.model", model);
  file.set_strings("tokenizer.ggml.tokens", tokens);
  file.set("tokenizer.ggml.token_type", formats::MetaArray(kinds));
  return file;
}

Strings pieces(const MemoryModelFile& file, std::string_view text, bool add_special = false) {
  const auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  if (!tokenizer) return {};
  const auto ids = (*tokenizer)->encode(text, {.add_special = add_special, .parse_special = true, .breaks = {}});
  EXPECT_TRUE(ids) << ids.error().message;
  Strings result;
  for (const TokenId id : *ids) result.emplace_back((*tokenizer)->piece(id));
  return result;
}

std::string refusal(const MemoryModelFile& file) {
  const auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_FALSE(tokenizer);
  return tokenizer ? std::string() : tokenizer.error().message;
}

MemoryModelFile gemma4() {
  MemoryModelFile file = file_of(
      "gemma4",
      {"<unk>", "<bos>", "\u2581", "a", "b", "c", "ab", "bc", "\u2581a", "\n", "\n\n", "\n\n\n", "<0xC3>", "<0xA9>"},
      {kUnknown, kControl, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal,
       kByte, kByte});
  file.set_strings("tokenizer.ggml.merges", Strings{"b c", "\u2581 a", "a b"});
  file.set("tokenizer.ggml.scores", formats::MetaArray(std::vector<double>(14, -1000.0)));
  file.set("tokenizer.ggml.add_space_prefix", false);
  file.set("tokenizer.ggml.bos_token_id", uint64_t{1});
  return file;
}

TEST(gemma4_tokenizer, the_earlier_merge_goes_first_and_no_space_is_put_before_a_text) {
  EXPECT_EQ(pieces(gemma4(), "abc ab"), (Strings{"a", "bc", "\u2581a", "b"}));
}

TEST(gemma4_tokenizer, a_run_of_line_ends_is_one_token_and_other_characters_are_bytes) {
  EXPECT_EQ(pieces(gemma4(), "a\n\n\nb"), (Strings{"a", "\n\n\n", "b"}));
  EXPECT_EQ(pieces(gemma4(), "\u00e9"), (Strings{"<0xC3>", "<0xA9>"}));
}

TEST(gemma4_tokenizer, begins_texts_with_its_first_token) {
  EXPECT_EQ(pieces(gemma4(), "a", true), (Strings{"<bos>", "a"}));
}

TEST(gemma4_tokenizer, merges_that_are_none_are_named) {
  MemoryModelFile file = gemma4();
  file.set_strings("tokenizer.ggml.merges", Strings{"b c", "c c"});
  EXPECT_NE(refusal(file).find("tokenizer.ggml.merges[1]: \"c c\" makes no token"), std::string::npos);
  file.erase("tokenizer.ggml.merges");
  EXPECT_NE(refusal(file).find("tokenizer.ggml.merges: the key is absent"), std::string::npos);
}

MemoryModelFile bert() {
  MemoryModelFile file = file_of(
      "bert", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581un", "\u2581want", "want", "able", "\u2581,", "\u2581\u4f60"},
      {kControl, kControl, kControl, kControl, kNormal, kNormal, kNormal, kNormal, kNormal, kNormal});
  file.set("tokenizer.ggml.unknown_token_id", uint64_t{1});
  return file;
}

TEST(word_piece, takes_the_longest_piece_from_the_left_or_the_word_is_unknown) {
  EXPECT_EQ(pieces(bert(), "unwantable want unable wants"),
            (Strings{"\u2581un", "want", "able", "\u2581want", "\u2581un", "able", "[UNK]"}));
}

TEST(word_piece, marks_and_ideographs_are_words_and_accents_and_capitals_go) {
  EXPECT_EQ(pieces(bert(), "W\u00e1nt,want\u4f60\u4f60"),
            (Strings{"\u2581want", "\u2581,", "\u2581want", "\u2581\u4f60", "\u2581\u4f60"}));
  MemoryModelFile cased = bert();
  cased.set("tokenizer.ggml.normalizer.lowercase", false);
  EXPECT_EQ(pieces(cased, "Want"), (Strings{"[UNK]"}));
}

TEST(word_piece, stands_between_its_two_tokens_and_is_written_with_spaces) {
  const auto tokenizer = Tokenizer::from_model_file(bert());
  ASSERT_TRUE(tokenizer);
  const auto ids = (*tokenizer)->encode("unable want", {.parse_special = true});
  ASSERT_TRUE(ids);
  EXPECT_EQ((*tokenizer)->piece(ids->front()), "[CLS]");
  EXPECT_EQ((*tokenizer)->piece(ids->back()), "[SEP]");
  EXPECT_EQ(detokenize(**tokenizer, *ids, true), "unable want");
}

TEST(word_piece, a_word_of_too_many_characters_is_unknown) {
  MemoryModelFile file = bert();
  file.set("tokenizer.candor.max_word_characters", uint64_t{6});
  EXPECT_EQ(pieces(file, "unable unwant un"), (Strings{"\u2581un", "able", "\u2581un", "want", "\u2581un"}));
  EXPECT_EQ(pieces(file, "unwantable"), (Strings{"[UNK]"}));
}

TEST(word_piece, a_vocabulary_without_an_unknown_token_is_refused) {
  MemoryModelFile file = file_of("bert", {"\u2581a"}, {kNormal});
  EXPECT_NE(refusal(file).find("tokenizer.ggml.unknown_token_id: the key is absent"), std::string::npos);
}

}  // namespace
}  // namespace candor::text::small_models
