// A model that reasons between <think> and </think> before it answers: where stops count, where a constraint begins.

#include <algorithm>

#include "engine_fixture.h"
#include "text/tokenizer/tokenizer.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;

constexpr TokenId kOpen = 318;
constexpr TokenId kClose = 319;
const std::string kMark = "</think>";

class Reasoning : public testing::TinyModelTest {
 protected:
  Reasoning() {
    const auto file = testing::make_tiny_model(tiny_options());
    const auto tokenizer = text::Tokenizer::from_model_file(*file);
    std::vector<std::string> pieces;
    for (TokenId id = 0; id < kOpen; ++id) pieces.emplace_back((*tokenizer)->piece(id));
    pieces.emplace_back("<think>");
    pieces.push_back(kMark);
    file->set_strings("tokenizer.ggml.tokens", pieces);
    const auto path = folder_.path() / "reasoning.gguf";
    EXPECT_TRUE(testing::write_model(*file, path).has_value());
    engine_ = testing::open_or_fail(testing::options_for(path));
  }
  // Letters, and sooner or later the end of the reasoning.
  static Request letters(bool opens_in_reasoning, uint64_t seed) {
    Request request = sampled(TokenPrompt{1, opens_in_reasoning ? kOpen : 300}, 60, seed);
    request.sampling.temperature = 3.0;
    for (TokenId id = 260; id < 286; ++id) request.sampling.allowed_token_ids.push_back(id);
    request.sampling.allowed_token_ids.push_back(kClose);
    return request;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(Reasoning, stops_count_in_their_scope_only) {
  int n_cases = 0;
  for (uint64_t seed = 0; seed < 60 && n_cases < 5; ++seed) {
    Request request = letters(true, seed);
    const std::string whole = complete(*engine_, request).text;
    const size_t mark = whole.find(kMark);
    if (mark == std::string::npos || whole.find(kMark, mark + 1) != std::string::npos) continue;
    const size_t answer = mark + kMark.size();
    if (answer + 4 > whole.size() || mark < 4) continue;
    const std::string stop(1, whole[answer + 3]);
    const size_t in_content = whole.find(stop, answer);
    const size_t in_reasoning = whole.substr(0, mark).find(stop);
    if (in_reasoning == std::string::npos) continue;
    ++n_cases;
    request.sampling.stop = {"never", stop};
    for (const auto& [scope, end] : {std::pair{StopScope::kBoth, in_reasoning},
                                     {StopScope::kReasoning, in_reasoning},
                                     {StopScope::kContent, in_content}}) {
      request.sampling.stop_scope = scope;
      const Completion found = complete(*engine_, request);
      EXPECT_EQ(found.text, whole.substr(0, end)) << seed;
      EXPECT_EQ(found.finish, FinishReason::kStopString);
      EXPECT_EQ(found.stop_index, 1u);
    }
  }
  EXPECT_EQ(n_cases, 5);
}

TEST_F(Reasoning, stop_ids_count_in_their_scope_only) {
  Request request = letters(false, 3);
  const Completion whole = complete(*engine_, request);
  request.sampling.stop_ids = {whole.tokens[5]};
  request.sampling.stop_scope = StopScope::kContent;
  const Completion stopped = complete(*engine_, request);
  EXPECT_LE(stopped.tokens.size(), 6u);
  EXPECT_EQ(stopped.finish, FinishReason::kStopId);
  request.sampling.stop_scope = StopScope::kReasoning;
  EXPECT_EQ(complete(*engine_, request).tokens, whole.tokens);
}

TEST_F(Reasoning, a_constraint_begins_behind_it) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Request request = sampled(TokenPrompt{1, kOpen}, 120, seed);
    request.sampling.logit_bias = {{.token = kClose, .bias = 5.0}};
    request.constraint = {GrammarKind::kRegex, "[0-9]{3}"};
    if (seed == 3) request.beams = BeamSearch{.width = 3};
    const Completion found = complete(*engine_, request);
    EXPECT_EQ(found.finish, FinishReason::kStopEos);
    const size_t mark = found.text.find(kMark);
    ASSERT_NE(mark, std::string::npos) << found.text;
    const std::string answer = found.text.substr(mark + kMark.size());
    EXPECT_TRUE(answer.size() == 3 && std::ranges::all_of(answer, [](char c) { return c >= '0' && c <= '9'; }))
        << found.text;
  }
}

TEST_F(Reasoning, a_constraint_holds_from_the_first_token_where_the_prompt_does_not_end_inside) {
  Request request = sampled(TokenPrompt{1, kOpen, kClose, 300}, 20, 1);
  request.constraint = {GrammarKind::kRegex, "[0-9]{3}"};
  EXPECT_EQ(complete(*engine_, request).text.size(), 3u);
}

TEST_F(Reasoning, a_model_may_open_it_by_its_first_token_where_the_constraint_lets_it) {
  Request request = sampled(TokenPrompt{1, 300}, 120, 1);
  request.sampling.logit_bias = {{.token = kOpen, .bias = 40.0}, {.token = kClose, .bias = 90.0}};
  request.constraint = {GrammarKind::kRegex, "[0-9]{3}"};
  EXPECT_EQ(complete(*engine_, request).text.size(), 3u);
  request.constraint->may_reason_first = true;
  for (const int32_t width : {0, 3}) {
    if (width > 0) request.beams = BeamSearch{.width = width};
    const Completion found = complete(*engine_, request);
    EXPECT_EQ(found.finish, FinishReason::kStopEos);
    EXPECT_EQ(found.text.substr(0, 7), "<think>");
    const size_t mark = found.text.find(kMark);
    ASSERT_NE(mark, std::string::npos) << found.text;
    EXPECT_EQ(found.text.size(), mark + kMark.size() + 3) << found.text;
  }
}

TEST_F(Reasoning, a_model_that_does_not_open_it_at_once_is_constrained_from_the_first_token) {
  for (const TokenPrompt& prompt : {TokenPrompt{1, 300}, TokenPrompt{1, kOpen, kClose}}) {
    Request request = sampled(prompt, 20, 1);
    request.sampling.logit_bias = {{.token = kOpen, .bias = prompt.size() == 2 ? -30.0 : 30.0}};
    request.constraint = {GrammarKind::kRegex, "[0-9]{3}"};
    request.constraint->may_reason_first = true;
    EXPECT_EQ(complete(*engine_, request).text.size(), 3u);
  }
}

TEST_F(Reasoning, a_scope_is_refused_where_the_vocabulary_cannot_tell) {
  const auto plain = testing::open_or_fail(testing::options_for(tiny_path(tiny_options())));
  Request request = sampled(TokenPrompt{1}, 4, 1);
  request.sampling.stop_scope = StopScope::kContent;
  const auto refused = plain->generate(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "stop_scope");
}

}  // namespace
}  // namespace candor
