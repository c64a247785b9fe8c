#include "constrain/grammar_constraint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace candor::constrain {
namespace {

// Single bytes 0..127, then a few words, then the end token.
class ToyTokenizer final : public text::Tokenizer {
 public:
  ToyTokenizer() {
    for (int i = 0; i < 128; ++i) pieces_.push_back(std::string(1, static_cast<char>(i)));
    for (const char* word : {"true", "false", "\"name\"", "yes", "no", "maybe"}) pieces_.emplace_back(word);
    pieces_.emplace_back("<end>");
    end_ = static_cast<TokenId>(pieces_.size()) - 1;
    ends_ = {end_};
  }
  std::vector<TokenId> encode(std::string_view text, const text::EncodeOptions&) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(static_cast<TokenId>(c));
    return tokens;
  }
  std::string_view bytes_of(TokenId id) const override { return id == end_ ? std::string_view{} : piece(id); }
  std::string_view piece(TokenId id) const override { return pieces_[static_cast<size_t>(id)]; }
  text::TokenKind kind(TokenId id) const override {
    return id == end_ ? text::TokenKind::kControl : text::TokenKind::kNormal;
  }
  int32_t n_vocab() const override { return static_cast<int32_t>(pieces_.size()); }
  const text::SpecialTokens& special() const override { return special_; }
  std::span<const TokenId> end_tokens() const override { return ends_; }
  std::optional<TokenId> find(std::string_view text) const override {
    for (TokenId id = 0; id < n_vocab(); ++id) {
      if (piece(id) == text) return id;
    }
    return std::nullopt;
  }
  std::string description() const override { return "toy"; }
  bool strips_leading_space() const override { return false; }

 private:
  std::vector<std::string> pieces_;
  std::vector<TokenId> ends_;
  TokenId end_;
  text::SpecialTokens special_;
};

class GrammarConstraintTest : public ::testing::Test {
 protected:
  std::unique_ptr<Constraint> compile(GrammarKind kind, std::string_view source) {
    auto compiler = GrammarCompiler::create(tokenizer_);
    EXPECT_TRUE(compiler.has_value());
    auto constraint = (*compiler)->compile(kind, source);
    EXPECT_TRUE(constraint.has_value()) << (constraint ? "" : constraint.error().message);
    return constraint ? std::move(*constraint) : nullptr;
  }
  std::string allowed(Constraint& constraint) {
    TokenMask mask(tokenizer_.n_vocab());
    EXPECT_TRUE(constraint.mask(mask).has_value());
    std::string pieces;
    for (TokenId id = 0; id < tokenizer_.n_vocab(); ++id) {
      if (mask.allows(id)) pieces += std::string(tokenizer_.piece(id)) + " ";
    }
    return pieces;
  }
  TokenId token(std::string_view piece) const { return *tokenizer_.find(piece); }

  ToyTokenizer tokenizer_;
};

TEST_F(GrammarConstraintTest, a_choice_allows_every_split_of_its_texts_and_then_only_the_end) {
  const auto constraint = compile(GrammarKind::kChoice, R"(["yes", "no"])");
  ASSERT_NE(constraint, nullptr);
  EXPECT_EQ(allowed(*constraint), "n y yes no ");
  ASSERT_TRUE(constraint->accept(token("yes")).has_value());
  EXPECT_TRUE(constraint->may_end());
  EXPECT_EQ(allowed(*constraint), "<end> ");
}

TEST_F(GrammarConstraintTest, a_token_that_is_not_allowed_is_refused_and_changes_nothing) {
  const auto constraint = compile(GrammarKind::kRegex, "[0-9]{2}");
  ASSERT_NE(constraint, nullptr);
  const std::string before = allowed(*constraint);
  EXPECT_EQ(before, "0 1 2 3 4 5 6 7 8 9 ");
  EXPECT_FALSE(constraint->accept(token("a")).has_value());
  EXPECT_EQ(allowed(*constraint), before);
}

TEST_F(GrammarConstraintTest, a_fork_goes_its_own_way) {
  const auto constraint = compile(GrammarKind::kRegex, "ab|cd");
  ASSERT_NE(constraint, nullptr);
  auto fork = constraint->fork();
  ASSERT_TRUE(fork.has_value());
  ASSERT_TRUE((*fork)->accept(token("a")).has_value());
  EXPECT_EQ(allowed(**fork), "b ");
  EXPECT_EQ(allowed(*constraint), "a c ");
}

TEST_F(GrammarConstraintTest, a_schema_holds_and_a_bad_one_is_refused) {
  const auto constraint = compile(GrammarKind::kJsonSchema, R"({"type": "boolean"})");
  ASSERT_NE(constraint, nullptr);
  EXPECT_TRUE(constraint->accept(token("true")).has_value());
  EXPECT_NE(compile(GrammarKind::kJsonObject, ""), nullptr);

  auto compiler = GrammarCompiler::create(tokenizer_);
  ASSERT_TRUE(compiler.has_value());
  for (const char* schema : {"123", R"({"type": 5})", R"({"type": "stsring"})", "{"}) {
    const auto refused = (*compiler)->compile(GrammarKind::kJsonSchema, schema);
    ASSERT_FALSE(refused.has_value()) << schema;
    EXPECT_FALSE(refused.error().message.empty());
  }
}

}  // namespace
}  // namespace candor::constrain
