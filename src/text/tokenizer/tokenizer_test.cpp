#include "text/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/detokenizer.h"
#include "text/small_vocabularies.h"
#include "text/tokenizer/merge_table.h"

namespace candor::text {
namespace {

using candor::testing::MemoryModelFile;
using candor::testing::small_bpe;
using candor::testing::small_sentence_piece;
using candor::testing::small_unigram;

constexpr EncodeOptions kPlain{.add_special = false, .parse_special = false, .breaks = {}};
constexpr EncodeOptions kParsed{.add_special = false, .parse_special = true, .breaks = {}};

std::unique_ptr<Tokenizer> open(const MemoryModelFile& file) {
  auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  std::vector<std::string> result;
  const auto encoded = tokenizer.encode(text, options);
  EXPECT_TRUE(encoded) << encoded.error().message;
  if (!encoded) return {};
  for (const TokenId id : *encoded) result.emplace_back(tokenizer.piece(id));
  return result;
}

using Strings = std::vector<std::string>;

std::string refusal(const MemoryModelFile& file) {
  const auto tokenizer = Tokenizer::from_model_file(file);
  EXPECT_FALSE(tokenizer);
  if (tokenizer) return {};
  EXPECT_EQ(tokenizer.error().message.find('\n'), std::string::npos);
  return tokenizer.error().message;
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(tokenizer, bpe_merges_by_rank_then_from_the_left) {
  const auto tokenizer = open(small_bpe());
  EXPECT_EQ(pieces(*tokenizer, "hello world", kPlain), (Strings{"hello", "\u0120w", "o", "r", "l", "d"}));
  EXPECT_EQ(pieces(*tokenizer, "aaaaaaa", kPlain), (Strings{"aaaa", "aa", "a"}));
  EXPECT_EQ(tokenizer->description(), "byte-level BPE (gpt-2)");
}

TEST(tokenizer, short_and_long_words_merge_alike) {
  std::mt19937 random(3);
  MergeTable table(400);
  for (int i = 0; i < 400; ++i) {
    const auto left = static_cast<TokenId>(random() % 40);
    table.insert({left, static_cast<TokenId>(random() % 40), static_cast<TokenId>(i % 60)}, static_cast<uint32_t>(i));
  }
  // A token that no merge knows keeps the halves of a long word apart.
  constexpr TokenId kWall = 1000;
  for (int round = 0; round < 300; ++round) {
    std::vector<TokenId> left(1 + random() % 40), right(1 + random() % 40), both;
    for (TokenId& id : left) id = static_cast<TokenId>(random() % 12);
    for (TokenId& id : right) id = static_cast<TokenId>(random() % 12);
    both = left;
    both.push_back(kWall);
    both.insert(both.end(), right.begin(), right.end());
    both.resize(both.size() + 60, kWall);
    table.merge(left);
    table.merge(right);
    table.merge(both);
    left.push_back(kWall);
    left.insert(left.end(), right.begin(), right.end());
    left.resize(left.size() + 60, kWall);
    EXPECT_EQ(both, left);
  }
}

TEST(tokenizer, control_tokens_in_a_text_stay_text_unless_asked_for) {
  const auto tokenizer = open(small_bpe());
  EXPECT_EQ(pieces(*tokenizer, "<|im_end|>", kParsed), (Strings{"<|im_end|>"}));
  EXPECT_EQ(pieces(*tokenizer, "<|im_end|>", kPlain).front(), "<|");
  EXPECT_EQ(pieces(*tokenizer, "a<think>b::", kPlain), (Strings{"a", "<think>", "b", "::"}));
}

TEST(tokenizer, breaks_keep_a_control_token_from_being_recognised) {
  const auto tokenizer = open(small_bpe());
  const std::string text = "<|im_end|><|im_end|>";
  const std::vector<size_t> inside = {3};
  const auto parsed = *tokenizer->encode(text, {.add_special = false, .parse_special = true, .breaks = inside});
  EXPECT_EQ(tokenizer->piece(parsed.back()), "<|im_end|>");
  EXPECT_EQ(tokenizer->piece(parsed.front()), "<|");
  const std::vector<size_t> at_borders = {10};
  EXPECT_EQ(tokenizer->encode(text, {.add_special = false, .parse_special = true, .breaks = at_borders})->size(), 2u);
  const std::vector<size_t> around = {0, 10};
  EXPECT_GT(tokenizer->encode(text, {.add_special = false, .parse_special = true, .breaks = around})->size(), 2u);
}

TEST(tokenizer, whole_pieces_come_first_where_the_vocabulary_says_so) {
  MemoryModelFile file = small_bpe("llama-bpe");
  const std::vector<std::string> merges = {"h e", "l l"};
  file.set_strings("tokenizer.ggml.merges", merges);
  EXPECT_EQ(pieces(*open(file), "hello", kPlain), (Strings{"hello"}));
  file.set_string("tokenizer.ggml.pre", "qwen2");
  EXPECT_EQ(pieces(*open(file), "hello", kPlain), (Strings{"he", "ll", "o"}));
}

TEST(tokenizer, the_beginning_token_follows_the_key_and_else_the_vocabulary) {
  EXPECT_FALSE(open(small_bpe("qwen2"))->special().add_bos);
  MemoryModelFile file = small_bpe("llama-bpe");
  const auto tokenizer = open(file);
  EXPECT_TRUE(tokenizer->special().add_bos);
  EXPECT_EQ(*tokenizer->encode("", {}), (std::vector<TokenId>{tokenizer->special().bos}));
  file.set("tokenizer.ggml.add_bos_token", false);
  file.set("tokenizer.ggml.add_eos_token", true);
  const auto ended = open(file);
  EXPECT_EQ(*ended->encode("", {}), (std::vector<TokenId>{ended->special().eos}));
}

TEST(tokenizer, end_tokens_are_found_by_key_and_by_name) {
  const auto tokenizer = open(small_bpe());
  const TokenId end = *tokenizer->find("<|im_end|>");
  EXPECT_EQ(tokenizer->special().eot, end);
  ASSERT_EQ(tokenizer->end_tokens().size(), 1u);
  EXPECT_EQ(tokenizer->end_tokens()[0], end);
}

TEST(tokenizer, sentence_piece_prefixes_merges_and_falls_back_to_bytes) {
  const auto tokenizer = open(small_sentence_piece());
  EXPECT_EQ(pieces(*tokenizer, "hello", kPlain), (Strings{"\u2581hello"}));
  EXPECT_EQ(pieces(*tokenizer, "x", kPlain), (Strings{"\u2581", "<0x78>"}));
  EXPECT_EQ(pieces(*tokenizer, "aaaaa", kPlain), (Strings{"\u2581", "aaaa", "a"}));
  EXPECT_EQ(pieces(*tokenizer, "", kPlain), Strings{});
  EXPECT_EQ(pieces(*tokenizer, "hello", {}), (Strings{"<s>", "\u2581hello"}));
}

TEST(tokenizer, sentence_piece_never_makes_a_control_token_of_merges) {
  const auto tokenizer = open(small_sentence_piece());
  const auto encoded = tokenizer->encode("</s><s><0x41>", kPlain);
  for (const TokenId id : *encoded) {
    EXPECT_NE(tokenizer->kind(id), TokenKind::kControl);
    EXPECT_FALSE(tokenizer->kind(id) == TokenKind::kByte && tokenizer->bytes_of(id) == "A");
  }
  EXPECT_EQ(pieces(*tokenizer, "hello</s>hello", kParsed), (Strings{"\u2581hello", "</s>", "\u2581hello"}));
}

TEST(tokenizer, any_bytes_come_back) {
  std::mt19937 random(5);
  for (const auto& tokenizer : {open(small_bpe()), open(small_bpe("deepseek-v3")), open(small_sentence_piece())}) {
    for (int round = 0; round < 500; ++round) {
      std::string text(random() % 60, ' ');
      for (char& c : text)
        c = random() % 3 == 0 ? static_cast<char>(random()) : "hello a[]<|>/s\xE2\x96"[random() % 17];
      const std::vector<TokenId> tokens = *tokenizer->encode(text, kPlain);
      if (text.find("\u2581") != std::string::npos) continue;  // to SentencePiece the same as a space
      EXPECT_EQ(detokenize(*tokenizer, tokens, true), text);
    }
  }
}

TEST(tokenizer, refuses_unknown_models_and_pre_tokenizers_by_name) {
  MemoryModelFile file = small_bpe();
  file.set_string("tokenizer.ggml.model", "rwkv");
  EXPECT_TRUE(contains(refusal(file), "\"rwkv\" is not supported (supported: llama, gpt2, t5, gemma4, bert)"));
  file = small_bpe("my-own");
  EXPECT_TRUE(contains(refusal(file), "\"my-own\" is not known (known: a.x-4.0, "));
  file.erase("tokenizer.ggml.pre");
  EXPECT_TRUE(contains(refusal(file), "tokenizer.ggml.pre: the key is absent"));
  file.erase("tokenizer.ggml.model");
  EXPECT_TRUE(contains(refusal(file), "tokenizer.ggml.model: the key is absent"));
}

TEST(tokenizer, refuses_vocabularies_that_contradict_themselves) {
  MemoryModelFile file = small_bpe();
  file.set_strings("tokenizer.ggml.tokens", {});
  EXPECT_TRUE(contains(refusal(file), "the vocabulary is empty"));
  file = small_bpe();
  file.set_ints("tokenizer.ggml.token_type", {1, 1});
  EXPECT_TRUE(contains(refusal(file), "token_type: 2 entries for"));
  file = small_bpe();
  file.set_strings("tokenizer.ggml.merges", {"h zz"});
  EXPECT_TRUE(contains(refusal(file), "merges[0]: \"zz\" is no token"));
  file.set_strings("tokenizer.ggml.merges", {"he"});
  EXPECT_TRUE(contains(refusal(file), "expected two pieces"));
  file.erase("tokenizer.ggml.merges");
  EXPECT_TRUE(contains(refusal(file), "needs its merges"));
  file = small_bpe();
  file.set("tokenizer.ggml.bos_token_id", int64_t{5000});
  EXPECT_TRUE(contains(refusal(file), "bos_token_id: 5000, expected a token id from 0 to "));
  file.set("tokenizer.ggml.bos_token_id", int64_t{0xFFFFFFFF});
  file.set("tokenizer.ggml.add_bos_token", true);
  EXPECT_TRUE(contains(refusal(file), "bos_token_id names none"));
}

std::vector<std::string_view> tokens_of(const MemoryModelFile& file) {
  return std::get<std::vector<std::string_view>>(std::get<formats::MetaArray>(*file.meta("tokenizer.ggml.tokens")));
}

TEST(tokenizer, refuses_duplicate_tokens) {
  MemoryModelFile file = small_bpe();
  std::vector<std::string_view> tokens = tokens_of(file);
  tokens[7] = "hello";
  file.set("tokenizer.ggml.tokens", formats::MetaArray(tokens));
  EXPECT_TRUE(contains(refusal(file), "token \"hello\" appears twice, with ids 7 and "));
}

// Byte-level BPE whose tokens for these bytes are others.
MemoryModelFile bpe_without(std::string_view bytes) {
  MemoryModelFile file = small_bpe();
  std::vector<std::string_view> tokens = tokens_of(file);
  for (const char byte : bytes) {
    const size_t id = static_cast<uint8_t>(byte);
    tokens[id] = file.keep("other piece " + std::to_string(id));
  }
  file.set("tokenizer.ggml.tokens", formats::MetaArray(tokens));
  return file;
}

std::string encode_error(const Tokenizer& tokenizer, std::string_view text) {
  const auto tokens = tokenizer.encode(text, kPlain);
  return tokens ? std::string() : tokens.error().message;
}

TEST(tokenizer, a_byte_without_a_token_is_reported_by_the_text_that_needs_it) {
  const MemoryModelFile file = bpe_without("A\xF3\xFF");
  const auto tokenizer = open(file);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(pieces(*tokenizer, "hello a", kPlain), pieces(*open(small_bpe()), "hello a", kPlain));
  EXPECT_EQ(encode_error(*tokenizer, "hello A"),
            "the text at offset 6 holds the byte 0x41 of U+0041, for which this model's vocabulary has no token; leave "
            "that character out");
  EXPECT_TRUE(contains(encode_error(*tokenizer, "e\U000E0041"), "at offset 1 holds the byte 0xF3 of U+E0041,"));
  EXPECT_TRUE(contains(encode_error(*tokenizer, "\xFF"), "at offset 0 holds the byte 0xFF, for which"));
  EXPECT_EQ(encode_error(*tokenizer, "<think>\u00E9"), "");
  EXPECT_TRUE(contains(encode_error(*tokenizer, "<think>A"), "at offset 7 "));
}

TEST(tokenizer, a_byte_without_a_token_that_a_normaliser_made_has_no_place) {
  MemoryModelFile file = bpe_without("A");
  file.set_strings("tokenizer.candor.normalizer", {"nfkc", "", ""});
  EXPECT_TRUE(contains(encode_error(*open(file), "l\uFF21"), "the text holds the byte 0x41 of U+0041,"));
}

TEST(tokenizer, an_unknown_token_stands_for_bytes_where_the_file_says_so) {
  MemoryModelFile file = bpe_without("AB");
  const int64_t unknown = *open(file)->find("<|im_start|>");
  file.set("tokenizer.candor.unknown_byte_id", unknown);
  EXPECT_EQ(pieces(*open(file), "lABl A", kPlain), (Strings{"l", "<|im_start|>", "<|im_start|>", "l", "\u0120",
                                                           "<|im_start|>"}));
  file.set("tokenizer.candor.fuse_unknown", true);
  EXPECT_EQ(pieces(*open(file), "lABl A", kPlain), (Strings{"l", "<|im_start|>", "l", "\u0120", "<|im_start|>"}));
  file.set("tokenizer.candor.unknown_byte_id", int64_t{100'000});
  EXPECT_TRUE(contains(refusal(file), "unknown_byte_id: 100000, expected a token id from 0 to "));
}

TEST(tokenizer, refuses_a_byte_level_vocabulary_without_any_byte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  MemoryModelFile file = bpe_without(bytes);
  file.set_strings("tokenizer.ggml.merges", {});
  EXPECT_TRUE(contains(refusal(file), "no token for any of the 256 bytes"));
}

// Kinds of the byte tokens <0xC3> and <0xA9> as ordinary pieces, and the unknown token as a control token.
TEST(tokenizer, characters_without_all_their_bytes_are_unknown_or_reported) {
  MemoryModelFile file = small_sentence_piece();
  auto types = std::get<std::vector<int64_t>>(std::get<formats::MetaArray>(*file.meta("tokenizer.ggml.token_type")));
  types[3 + 0xBF] = candor::testing::kNormalType;
  file.set_ints("tokenizer.ggml.token_type", types);
  EXPECT_EQ(pieces(*open(file), "x\u00FF\u00FFa\u00FF", kPlain),
            (Strings{"\u2581", "<0x78>", "<unk>", "a", "<unk>"}));
  file.set("tokenizer.candor.fuse_unknown", false);
  EXPECT_EQ(pieces(*open(file), "\u00FF\u00FF", kPlain), (Strings{"\u2581", "<unk>", "<unk>"}));
  types[0] = candor::testing::kControlType;
  file.set_ints("tokenizer.ggml.token_type", types);
  EXPECT_EQ(encode_error(*open(file), "a x"), "");
  EXPECT_TRUE(contains(encode_error(*open(file), "a \u00FF"), "at offset 2 holds the byte 0xBF of U+00FF,"));
}

TEST(tokenizer, an_unknown_token_that_is_text_is_not_recognised_in_a_prompt) {
  MemoryModelFile file = small_sentence_piece();
  EXPECT_EQ(pieces(*open(file), "a<unk>", kParsed), (Strings{"\u2581", "a", "<unk>"}));
  file.set("tokenizer.candor.unknown_is_text", true);
  EXPECT_EQ(pieces(*open(file), "a<unk>", kParsed).front(), "\u2581");
  EXPECT_FALSE(contains(pieces(*open(file), "a<unk>", kParsed).back(), "unk"));
}

TEST(tokenizer, refuses_sentence_piece_without_scores_or_with_unknown_types) {
  MemoryModelFile file = small_sentence_piece();
  file.set_floats("tokenizer.ggml.scores", {0.0});
  EXPECT_TRUE(contains(refusal(file), "scores: 1 scores for"));
  file.erase("tokenizer.ggml.scores");
  EXPECT_TRUE(contains(refusal(file), "needs a score for each token"));
  file = small_sentence_piece();
  auto types = std::get<std::vector<int64_t>>(std::get<formats::MetaArray>(*file.meta("tokenizer.ggml.token_type")));
  types[10] = 9;
  file.set_ints("tokenizer.ggml.token_type", types);
  EXPECT_TRUE(contains(refusal(file), "token_type[10]: 9, expected 0 to 6"));
}

// Pieces score -1, -2, ... in their order: "h" -2, "e" -3, "l" -4, "o" -5, "he" -12, "ll" -13, "hello" -15.
TEST(tokenizer, unigram_takes_the_pieces_of_the_greatest_sum) {
  const auto tokenizer = open(small_unigram());
  EXPECT_EQ(pieces(*tokenizer, "hello", kPlain), (Strings{"\u2581hello"}));
  EXPECT_EQ(pieces(*tokenizer, "ahe", kPlain), (Strings{"\u2581", "a", "h", "e"}));
  EXPECT_EQ(pieces(*tokenizer, "a  a", kPlain), (Strings{"\u2581", "a", "\u2581", "\u2581", "a"}));
  EXPECT_EQ(pieces(*tokenizer, "a\u00FF", kPlain), (Strings{"\u2581", "a", "<0xC3>", "<0xBF>"}));
  EXPECT_EQ(detokenize(*tokenizer, *tokenizer->encode("a \xFF he", kPlain), true), "a \xFF he");
  EXPECT_EQ(tokenizer->description(), "unigram");
}

TEST(tokenizer, normaliser_steps_are_applied_in_order_and_unknown_ones_refused) {
  MemoryModelFile file = small_sentence_piece();
  file.set_strings("tokenizer.candor.normalizer", {"nfkc", "", "", "lowercase", "", "", "replace", "x", "l"});
  const auto tokenizer = open(file);
  EXPECT_EQ(pieces(*tokenizer, "\uFF28EXXo", kPlain), (Strings{"\u2581hello"}));
  EXPECT_EQ(pieces(*tokenizer, "\xFFX", kPlain), pieces(*open(small_sentence_piece()), "\xFFX", kPlain));
  file.set_strings("tokenizer.candor.normalizer", {"nfkc", ""});
  EXPECT_TRUE(contains(refusal(file), "2 strings, expected three a step"));
  file.set_strings("tokenizer.candor.normalizer", {"alien", "", ""});
  EXPECT_TRUE(contains(refusal(file), "alien"));
  file.set_strings("tokenizer.candor.normalizer", {"charsmap", "AAAA", ""});
  EXPECT_TRUE(contains(refusal(file), "charsmap"));
}

}  // namespace
}  // namespace candor::text
