#include "constrain/grammar_constraint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/patient_helpers.h"

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
  Result<std::vector<TokenId>> encode(std::string_view text, const text::EncodeOptions&) const override {
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
    auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
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
  sandbox::HelperPool helpers_{testing::patient_helpers()};
};

TEST_F(GrammarConstraintTest, what_was_refused_is_refused_again_without_any_work) {
  const auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
  ASSERT_TRUE(compiler.has_value());
  const std::string source = R"({"type":"integer","multipleOf":9999991})";
  const auto refused = (*compiler)->compile(GrammarKind::kJsonSchema, source);
  ASSERT_FALSE(refused.has_value());
  helpers_.stop();
  const auto again = (*compiler)->compile(GrammarKind::kJsonSchema, source);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().kind, refused.error().kind);
  EXPECT_EQ(again.error().message, refused.error().message);
  const auto other = (*compiler)->compile(GrammarKind::kRegex, "[a-z]{3}");
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().kind, ErrorKind::kCancelled);
}

TEST_F(GrammarConstraintTest, a_choice_allows_every_split_of_its_texts_and_then_only_the_end) {
  const auto constraint = compile(GrammarKind::kChoice, R"(["yes", "no"])");
  ASSERT_NE(constraint, nullptr);
  EXPECT_EQ(allowed(*constraint), "n y yes no ");
  ASSERT_TRUE(constraint->accept(token("yes")).has_value());
  EXPECT_TRUE(constraint->may_end());
  EXPECT_EQ(allowed(*constraint), "<end> ");
}

// The toy vocabulary has no byte above 0x7F.
TEST_F(GrammarConstraintTest, a_text_that_needs_a_byte_without_a_token_is_never_allowed) {
  const auto constraint = compile(GrammarKind::kChoice, R"(["\u00e9", "yes"])");
  ASSERT_NE(constraint, nullptr);
  EXPECT_EQ(allowed(*constraint), "y yes ");
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

  auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
  ASSERT_TRUE(compiler.has_value());
  for (const char* schema : {"123", R"({"type": 5})", R"({"type": "stsring"})", "{"}) {
    const auto refused = (*compiler)->compile(GrammarKind::kJsonSchema, schema);
    ASSERT_FALSE(refused.has_value()) << schema;
    EXPECT_FALSE(refused.error().message.empty());
  }
}

// Everything that a client may send by mistake or on purpose, with what the message has to name.
TEST_F(GrammarConstraintTest, hostile_schemas_and_patterns_are_refused_with_their_place) {
  const auto times = [](const std::string& text, int n) {
    std::string all;
    for (int i = 0; i < n; ++i) all += text;
    return all;
  };
  const struct {
    GrammarKind kind;
    std::string source;
    const char* named;
  } kCases[] = {
      {GrammarKind::kJsonSchema, times(R"({"items":)", 5000) + "{}" + times("}", 5000), "deeper than 64"},
      {GrammarKind::kJsonSchema, R"({"type": "array", "minItems": 1000000})", "/minItems: 1000000 is above the limit"},
      {GrammarKind::kJsonSchema, R"({"properties": {"a": {"minLength": 2000000000}}})", "/properties/a/minLength"},
      {GrammarKind::kJsonSchema, R"({"type": "string", "pattern": "^?[0-9]$"})",
       "/pattern, character 2: nothing to re"},
      {GrammarKind::kJsonSchema, R"({"type": "string", "pattern": "foo**"})",
       "/pattern, character 5: nothing to repeat"},
      {GrammarKind::kJsonSchema, R"({"type": "string", "pattern": "["})", "/pattern, character 1"},
      {GrammarKind::kRegex, "a|*b", "regex, character 3"},
      {GrammarKind::kRegex, "(?:a{2}){3}{4}", "nothing to repeat"},
      {GrammarKind::kRegex, times("(", 50000), "character 50000"},
      {GrammarKind::kRegex, times("(", 50000) + times(")", 50000), "deeper than 256"},
      {GrammarKind::kRegex, "[a-z]{1,2000000000}", "above the limit"},
      {GrammarKind::kLark, "start: " + times("(", 50000) + "\"a\"" + times(")", 50000), "deeper than 256"},
      {GrammarKind::kLark, "foo: \"a\"", "start"},
      {GrammarKind::kJsonSchema, R"({"$ref": "#"})", "leads back to itself"},
      {GrammarKind::kJsonSchema, R"({"$ref": "http://169.254.169.254/"})", "nothing is fetched"},
      {GrammarKind::kJsonSchema, R"({"$ref": "file:///etc/passwd"})", "nothing is fetched"},
      {GrammarKind::kJsonSchema, R"({"enum": []})", "/enum"},
      {GrammarKind::kJsonSchema, R"({"items": {"type": "integer", "minimum": 5, "maximum": 1}})", "/items/minimum"},
      {GrammarKind::kJsonSchema, R"({"type": "number", "exclusiveMinimum": 1, "maximum": 1})", "/exclusiveMinimum"},
      {GrammarKind::kJsonSchema, R"({"minLength": 5, "maxLength": 1})", "/minLength"},
      {GrammarKind::kJsonSchema, R"({"type": "integer", "minimum": 1e308})", "/minimum"},
      {GrammarKind::kJsonSchema, R"({"type": "integer", "maximum": -1e308})", "/maximum"},
      {GrammarKind::kJsonSchema, R"({"type": "integer", "minimum": "5"})", "/minimum: must be a number"},
      {GrammarKind::kJsonSchema, R"({"multipleOf": 0})", "/multipleOf"},
      {GrammarKind::kJsonSchema, R"({"required": "a"})", "/required"},
      {GrammarKind::kJsonSchema, R"({"required": [1]})", "/required: 1 is not a name"},
      {GrammarKind::kJsonSchema, R"({"maxLength": -1})", "/maxLength"},
      {GrammarKind::kJsonSchema, R"({"minLength": 1.5})", "/minLength"},
      {GrammarKind::kJsonSchema, R"({"type": "string", "\u0074ype": "integer"})", "\"type\" is written twice"},
      {GrammarKind::kJsonSchema, R"({"properties": {"a": {"not": {"multipleOf": 2}}}})", "/properties/a/not"},
      {GrammarKind::kJsonSchema, R"({"uniqueItems": true})", "/uniqueItems"},
      {GrammarKind::kJsonSchema, R"({"x-guidance": {}})", "/x-guidance"},
      {GrammarKind::kChoice, "[]", "choice"},
  };
  const auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
  ASSERT_TRUE(compiler.has_value());
  for (const auto& [kind, source, named] : kCases) {
    const auto refused = (*compiler)->compile(kind, source);
    ASSERT_FALSE(refused.has_value()) << source.substr(0, 80);
    EXPECT_NE(refused.error().message.find(named), std::string::npos)
        << source.substr(0, 80) << ": " << refused.error().message.substr(0, 300);
    EXPECT_NE(refused.error().kind, ErrorKind::kInternal) << source.substr(0, 80);
  }
}

TEST_F(GrammarConstraintTest, what_only_looks_hostile_compiles) {
  const std::pair<GrammarKind, std::string> kCases[] = {
      {GrammarKind::kRegex, "(a+)+b"},
      {GrammarKind::kRegex, "[a-z]{1999,2000}"},
      {GrammarKind::kRegex, "(a*)*|b??"},
      {GrammarKind::kJsonSchema, R"({"type": "array", "maxItems": 1000000000})"},
      {GrammarKind::kJsonSchema, R"({"minimum": 1, "maximum": 1, "required": []})"},
      {GrammarKind::kJsonSchema, R"({"properties": {"type": {"type": "string"}, "a": {"type": "string"}}})"},
      {GrammarKind::kJsonSchema,
       R"({"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": false})"},
      {GrammarKind::kJsonSchema, R"({"enum": ["{\"a\":1,\"a\":2}"]})"},
  };
  for (const auto& [kind, source] : kCases) EXPECT_NE(compile(kind, source), nullptr) << source;
}

TEST_F(GrammarConstraintTest, words_without_an_effect_are_obeyed_around_and_named) {
  const char* schema = R"({"type": "boolean", "nullable": true, "x-order": 1, "maxlenght": 2})";
  EXPECT_NE(compile(GrammarKind::kJsonSchema, schema), nullptr);
  const auto words = GrammarCompiler::without_effect(GrammarKind::kJsonSchema, schema);
  ASSERT_TRUE(words.has_value());
  ASSERT_EQ(words->size(), 2u);
  EXPECT_NE(words->front().find("/nullable"), std::string::npos) << words->front();
  EXPECT_NE(words->back().find("did you mean maxLength?"), std::string::npos) << words->back();
  const auto of_lark =
      GrammarCompiler::without_effect(GrammarKind::kLark, R"(start: %json {"self": {}, "type": "null"})");
  ASSERT_TRUE(of_lark.has_value());
  EXPECT_EQ(of_lark->size(), 1u);
  EXPECT_TRUE(GrammarCompiler::without_effect(GrammarKind::kRegex, "a")->empty());
  EXPECT_TRUE(GrammarCompiler::without_effect(GrammarKind::kJsonSchema, "{")->empty());
}

class Gbnf : public GrammarConstraintTest {
 protected:
  bool matches(std::string_view grammar, std::string_view text) {
    const auto constraint = compile(GrammarKind::kGbnf, grammar);
    if (constraint == nullptr) return false;
    for (const char c : text) {
      if (!constraint->accept(static_cast<TokenId>(c))) return false;
    }
    return constraint->may_end();
  }
  std::string refused(const std::string& grammar) {
    auto compiler = GrammarCompiler::create(tokenizer_, helpers_);
    EXPECT_TRUE(compiler.has_value());
    const auto constraint = (*compiler)->compile(GrammarKind::kGbnf, grammar);
    EXPECT_FALSE(constraint.has_value()) << grammar.substr(0, 60);
    return constraint ? "" : constraint.error().message;
  }
};

TEST_F(Gbnf, a_grammar_allows_its_texts_and_no_others) {
  const char* list = "# a list\nroot ::= item+\nitem ::= \"- \" [^\\n]+ \"\\n\"  # to the line's end\n";
  EXPECT_TRUE(matches(list, "- one\n- two\n"));
  EXPECT_FALSE(matches(list, "- one"));
  const char* sum = "root ::= term (\"+\" term)*\nterm ::= num | \"(\" root \")\"\nnum ::= [0-9]+";
  for (const char* text : {"1", "12+3", "(1+(2+33))+4"}) EXPECT_TRUE(matches(sum, text)) << text;
  for (const char* text : {"", "1+", "(1", "1)"}) EXPECT_FALSE(matches(sum, text)) << text;
  EXPECT_TRUE(matches("root ::= root \"a\" | \"b\"", "baaa"));  // left recursion
  EXPECT_TRUE(matches("root ::= ( [x]* )*", "xxx"));
  EXPECT_TRUE(matches("root ::= ( [x]* )*", ""));
  EXPECT_TRUE(matches("root ::= \"a\"{2,3} .", "aaz"));
  EXPECT_FALSE(matches("root ::= \"a\"{2,3} .", "az"));
  EXPECT_TRUE(matches("root ::=\n  \"yes\" |\n  \"no\"\n  | \"maybe\"\n", "maybe"));
  EXPECT_TRUE(matches("root ::= \"\\x41\\u0042\\\"\\\\\" [\\]\\-a]", "AB\"\\-"));
}

TEST_F(Gbnf, neighbours_that_could_be_split_in_several_ways_are_all_allowed) {
  for (const char* text : {"ab", "aab", "abab"})
    EXPECT_TRUE(matches("root ::= \"a\"* \"ab\" (\"a\" \"b\")*", text)) << text;
  EXPECT_TRUE(matches("root ::= ws \"x\" ws | \"[\" root \"]\"\nws ::= [ \\t]*", "[[ x ]]"));
  EXPECT_TRUE(matches("root ::= ws \"x\" ws | \"[\" root \"]\"\nws ::= [ \\t]*", "[x]"));
}

TEST_F(Gbnf, what_is_wrong_is_named_with_its_place) {
  EXPECT_NE(refused("start ::= \"a\"").find("root"), std::string::npos);
  EXPECT_NE(refused("root ::= a").find("line 1, column 10"), std::string::npos);
  EXPECT_NE(refused("root ::= \"a\"\nroot ::= \"b\"").find("twice"), std::string::npos);
  EXPECT_NE(refused("root ::= " + std::string(50000, '(') + std::string(50000, ')')).find("deeper than 256"),
            std::string::npos);
  EXPECT_NE(refused("root ::= [a-z]{1,2000000000}").find("limit"), std::string::npos);
  EXPECT_NE(refused("root ::= \"\xC3").find("UTF-8"), std::string::npos);
  for (const char* bad :
       {"", "root", "root ::= \"a", "root ::= [", "root ::= []", "root ::= [z-a]", "root ::= (", "root ::= )",
        "root ::= \"\\q\"", "root ::= \"a\"{3,2}", "root ::= *", "::= \"a\"", "root ::= \"\\ud800\""}) {
    EXPECT_FALSE(refused(bad).empty()) << bad;
  }
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20000; ++i) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  EXPECT_NE(refused(chain).find("more than"), std::string::npos);
}

}  // namespace
}  // namespace candor::constrain
