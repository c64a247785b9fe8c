// Calls held to the form of a model: whatever random logits write under it, the form's own reader finds calls whose
// arguments obey the tool's schema. Over every form, with its marks as control tokens and as text.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "constrain/grammar_constraint.h"
#include "support/patient_helpers.h"
#include "text/chat/forms/call_grammar.h"
#include "text/chat/output_parser.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::constrain {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTools =
    R"([{"type": "function", "function": {"name": "set_light", "parameters": {"type": "object",
  "properties": {"room": {"type": "string"}, "colour": {"enum": ["red", "green"]}, "level": {"type": "integer",
    "minimum": 0, "maximum": 9}, "is_on": {"type": "boolean"}, "hours": {"type": "array", "items": {"type": "integer"}}},
  "required": ["room", "level"], "additionalProperties": false}}},
  {"type": "function", "function": {"name": "stop"}}])";

// The bytes, an end token, and marks as control tokens.
class MarkedTokenizer final : public text::Tokenizer {
 public:
  explicit MarkedTokenizer(std::span<const std::string_view> marks) {
    for (int i = 0; i < 256; ++i) pieces_.push_back(std::string(1, static_cast<char>(i)));
    pieces_.emplace_back("<end>");
    for (const std::string_view mark : marks) {
      controls_.push_back({std::string(mark), static_cast<TokenId>(pieces_.size())});
      pieces_.emplace_back(mark);
    }
  }
  std::span<const text::ControlToken> controls() const { return controls_; }
  Result<std::vector<TokenId>> encode(std::string_view, const text::EncodeOptions&) const override {
    return std::vector<TokenId>{};
  }
  std::string_view bytes_of(TokenId id) const override { return id >= kEnd ? std::string_view{} : piece(id); }
  std::string_view piece(TokenId id) const override { return pieces_[static_cast<size_t>(id)]; }
  text::TokenKind kind(TokenId id) const override {
    return id >= kEnd ? text::TokenKind::kControl : text::TokenKind::kNormal;
  }
  int32_t n_vocab() const override { return static_cast<int32_t>(pieces_.size()); }
  const text::SpecialTokens& special() const override { return special_; }
  std::span<const TokenId> end_tokens() const override { return ends_; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string description() const override { return "bytes and marks"; }
  bool strips_leading_space() const override { return false; }

  static constexpr TokenId kEnd = 256;

 private:
  std::vector<std::string> pieces_;
  std::vector<text::ControlToken> controls_;
  std::vector<TokenId> ends_ = {kEnd};
  text::SpecialTokens special_;
};

// Random tokens among those allowed, with a liking for ends, closing signs, and for going on with a mark.
class Writer {
 public:
  Writer(const MarkedTokenizer& tokenizer, const text::FormRow& row, uint32_t seed)
      : tokenizer_(tokenizer), random_(seed), marks_{"\"", "\"}", "<|\"|>", "]", "}"} {
    for (const std::string_view mark : row.writing.tokens) marks_.push_back(mark);
    for (const text::FormMark& mark : row.marks) marks_.push_back(mark.text);
    if (!row.writing.value_end.empty())
      tail_ = std::string(row.writing.value_tail) + std::string(row.writing.value_end);
    marks_.push_back(tail_);
  }

  std::optional<std::string> write(Constraint& constraint) {
    TokenMask mask(tokenizer_.n_vocab());
    std::string text;
    for (int i = 0; i < 3000; ++i) {
      if (!constraint.mask(mask)) return std::nullopt;
      const TokenId token = choose(mask, text);
      if (token == MarkedTokenizer::kEnd) return text;
      if (token < 0 || !constraint.accept(token)) return std::nullopt;
      text += tokenizer_.piece(token);
    }
    return std::nullopt;
  }

 private:
  TokenId choose(const TokenMask& mask, const std::string& text) {
    std::vector<double> weights(static_cast<size_t>(tokenizer_.n_vocab()), 0.0);
    for (size_t id = 0; id < weights.size(); ++id) {
      if (mask.allows(static_cast<TokenId>(id)))
        weights[id] = id >= 256 ? 60.0 : 0.5 + (id >= 'a' && id <= 'z' ? 1.0 : 0.0);
    }
    for (const std::string_view mark : marks_) {
      for (size_t n = 0; n < mark.size(); ++n) {
        const bool goes_on = text.ends_with(mark.substr(0, n));
        const auto next = static_cast<unsigned char>(mark[n]);
        if (goes_on && weights[next] > 0) weights[next] += n == 0 ? 4.0 : 400.0 * static_cast<double>(n);
      }
    }
    double sum = 0;
    for (const double weight : weights) sum += weight;
    if (sum == 0) return -1;
    double at = std::uniform_real_distribution<double>(0, sum)(random_);
    for (size_t id = 0; id < weights.size(); ++id) {
      at -= weights[id];
      if (at < 0 && weights[id] > 0) return static_cast<TokenId>(id);
    }
    return -1;
  }

  const MarkedTokenizer& tokenizer_;
  std::mt19937 random_;
  std::vector<std::string_view> marks_;
  std::string tail_;
};

void expect_obeys(const text::OutputPiece& call) {
  const Json arguments = Json::parse(call.text);
  ASSERT_TRUE(arguments.is_object());
  if (call.name == "stop") {
    EXPECT_EQ(arguments, Json::object());
    return;
  }
  EXPECT_EQ(call.name, "set_light");
  ASSERT_TRUE(arguments.contains("room") && arguments.contains("level")) << arguments;
  for (const auto& [key, value] : arguments.items()) {
    const bool is_right = (key == "room" && value.is_string()) ||
                          (key == "colour" && (value == "red" || value == "green")) ||
                          (key == "level" && value.is_number_integer() && value >= 0 && value <= 9) ||
                          (key == "is_on" && value.is_boolean()) || (key == "hours" && value.is_array());
    EXPECT_TRUE(is_right) << key << ": " << value;
  }
}

std::vector<text::OutputPiece> parsed(const text::FormRow& row, const std::string& output) {
  text::OutputParser parser({.tools = row.form, .types = text::ToolTypes::of(kTools)});
  auto pieces = parser.push(output);
  for (auto& piece : parser.finish()) pieces.push_back(std::move(piece));
  EXPECT_EQ(parser.n_unread(), 0) << row.name << ": " << output;
  return pieces;
}

struct FormRun {
  int n_finished = 0;
  int n_calls = 0;
  int n_texts = 0;
};

FormRun run_form(const text::FormRow& row, const text::CallWish& wish, bool has_tokens, int n_runs) {
  const MarkedTokenizer tokenizer(has_tokens ? row.writing.tokens : std::span<const std::string_view>{});
  sandbox::HelperPool helpers(testing::patient_helpers());
  const auto compiler = GrammarCompiler::create(tokenizer, helpers);
  const auto grammar = text::call_grammar(row, wish, tokenizer.controls());
  FormRun run;
  EXPECT_TRUE(grammar) << row.name << ": " << (grammar ? "" : grammar.error().message);
  if (!grammar) return run;
  for (int i = 0; i < n_runs; ++i) {
    auto constraint = (*compiler)->compile(GrammarKind::kLark, *grammar);
    EXPECT_TRUE(constraint) << row.name << ": " << (constraint ? "" : constraint.error().message) << "\n" << *grammar;
    if (!constraint) return run;
    const auto output = Writer(tokenizer, row, static_cast<uint32_t>(i)).write(**constraint);
    if (!output) continue;
    ++run.n_finished;
    int n_calls = 0;
    for (const text::OutputPiece& piece : parsed(row, *output)) {
      const bool is_call = piece.kind == text::OutputPiece::Kind::kCall;
      EXPECT_TRUE(is_call || wish.may_be_text) << row.name << ": " << *output;
      if (is_call) expect_obeys(piece);
      n_calls += is_call ? 1 : 0;
    }
    if (!wish.may_be_text) {
      EXPECT_GE(n_calls, 1) << row.name << ": " << *output;
    }
    if (!wish.may_repeat) {
      EXPECT_LE(n_calls, 1) << row.name << ": " << *output;
    }
    run.n_calls += n_calls;
    run.n_texts += n_calls == 0 ? 1 : 0;
  }
  return run;
}

constexpr int kRuns = 8;

TEST(call_forms, a_forced_call_is_right_in_every_form) {
  for (const text::FormRow* row : text::form_rows()) {
    for (const bool has_tokens : {false, true}) {
      const FormRun run = run_form(*row, {.tools_json = kTools}, has_tokens, kRuns);
      EXPECT_GE(run.n_finished, kRuns / 2) << row->name << has_tokens;
    }
  }
}

TEST(call_forms, a_named_tool_is_the_one_that_is_called) {
  for (const text::FormRow* row : text::form_rows()) {
    const auto grammar = text::call_grammar(*row, {.tools_json = kTools, .name = "stop"}, {});
    ASSERT_TRUE(grammar) << row->name;
    EXPECT_EQ(grammar->find("set_light"), std::string::npos) << row->name;
  }
}

TEST(call_forms, several_calls_follow_each_other_as_the_form_writes_them) {
  int n_several = 0;
  for (const text::FormRow* row : text::form_rows()) {
    const FormRun run = run_form(*row, {.tools_json = kTools, .may_repeat = true}, true, kRuns);
    EXPECT_GE(run.n_calls, run.n_finished) << row->name;
    n_several += run.n_calls > run.n_finished ? 1 : 0;
  }
  EXPECT_GE(n_several, 3);
}

TEST(call_forms, text_may_stand_before_a_strict_call_and_instead_of_it) {
  FormRun all;
  for (const text::FormRow* row : text::form_rows()) {
    if (row->form == text::ToolForm::kGptOss) continue;
    for (const bool has_tokens : {false, true}) {
      const FormRun run = run_form(*row, {.tools_json = kTools, .may_be_text = true}, has_tokens, kRuns);
      all.n_calls += run.n_calls;
      all.n_texts += run.n_texts;
    }
  }
  EXPECT_GE(all.n_calls, 10);
  EXPECT_GE(all.n_texts, 10);
}

TEST(call_forms, what_a_form_cannot_hold_is_said) {
  const auto refused = [](text::ToolForm form, const char* parameters, bool may_be_text = false) {
    const std::string tools =
        std::string(R"([{"type": "function", "function": {"name": "f", "parameters": )") + parameters + "}}]";
    const auto grammar =
        text::call_grammar(*text::form_row(form), {.tools_json = tools, .may_be_text = may_be_text}, {});
    return grammar ? std::string() : grammar.error().message;
  };
  EXPECT_EQ(refused(text::ToolForm::kHermes, R"({"not": {}})"), "f.parameters.not has no place in it");
  EXPECT_EQ(refused(text::ToolForm::kHermes, R"({"type": "object", "properties": {"a": {"pattern": "^x"}}})"), "");
  EXPECT_EQ(refused(text::ToolForm::kQwenCoder, R"({"properties": {"a": {"type": "string", "pattern": "^x"}}})"),
            "f.parameters.a is held to more than plain text can be");
  EXPECT_EQ(refused(text::ToolForm::kGlm, R"({"additionalProperties": {"type": "string"}})"),
            "f.parameters lists no properties");
  EXPECT_EQ(refused(text::ToolForm::kMiniMax, R"({"properties": {"a b": {}}})"),
            "f.parameters.a b has more than letters and digits in its name");
  EXPECT_EQ(refused(text::ToolForm::kGptOss, "{}", true), "its text and its calls begin alike");
}

}  // namespace
}  // namespace candor::constrain
