// Speculation changes how many tokens a step gives, and nothing else: greedy and sampled, constrained, cut by stops and
// by the context.

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;

class SpeculationTest : public testing::TinyModelTest {
 protected:
  SpeculationTest() {
    options_ = testing::options_for(tiny_path(tiny_options()));
    options_.n_ctx = 160;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};  // rows are free: guesses are made
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kNgram;
    guessing_ = testing::open_or_fail(options_);
  }
  static Request repeating(double temperature, uint64_t seed) {
    TokenPrompt prompt = {1};
    for (int i = 0; i < 40; ++i) prompt.push_back(static_cast<TokenId>(10 + (i * i + static_cast<int>(seed)) % 5));
    Request request = sampled(prompt, 60, seed);
    request.sampling.temperature = temperature;
    request.sampling.ignore_eos = true;
    return request;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
  std::unique_ptr<Engine> guessing_;
};

TEST_F(SpeculationTest, answers_are_those_of_plain_decoding) {
  int64_t n_drafted = 0;
  int64_t n_accepted = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    for (const double temperature : {0.0, 0.3, 1.0}) {
      Request request = repeating(temperature, seed);
      if (seed % 2 == 1) request.sampling.frequency_penalty = 0.1;
      if (seed == 2) request.sampling.max_tokens.reset();  // until the context is full
      if (seed == 3) request.sampling.allowed_token_ids = {10, 11, 12, 13, 14};
      const Completion expected = complete(*plain_, request);
      const Completion found = complete(*guessing_, request);
      testing::expect_same(found, expected, std::to_string(seed) + " at " + std::to_string(temperature));
      n_drafted += found.summary.usage.drafted_tokens;
      n_accepted += found.summary.usage.accepted_tokens;
      EXPECT_EQ(expected.summary.usage.drafted_tokens, 0);
    }
  }
  EXPECT_GT(n_accepted, 20);
  EXPECT_LT(n_accepted, n_drafted);
}

TEST_F(SpeculationTest, a_request_may_go_without) {
  Request request = repeating(0.0, 1);
  request.sampling.speculate = false;
  EXPECT_EQ(complete(*guessing_, request).summary.usage.drafted_tokens, 0);
}

TEST_F(SpeculationTest, several_requests_and_choices_at_once_get_their_own_answers) {
  std::vector<Request> requests;
  for (uint64_t seed = 0; seed < 8; ++seed) requests.push_back(repeating(seed % 2 == 0 ? 0.0 : 0.7, seed));
  const auto together = testing::Crowd(*guessing_).run(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, requests[i]), "request " + std::to_string(i));
  }
  EXPECT_EQ(guessing_->stats().kv_blocks_used, 0);
}

TEST_F(SpeculationTest, a_stop_inside_a_right_guess_ends_the_answer_there) {
  Request request = repeating(0.0, 4);
  const Completion whole = complete(*plain_, request);
  request.sampling.stop_ids = {whole.tokens[17]};
  testing::expect_same(complete(*guessing_, request), complete(*plain_, request), "stop id");
}

TEST_F(SpeculationTest, explanations_show_every_stage_and_change_nothing) {
  Request request = repeating(0.7, 5);
  request.sampling.top_k = 20;
  const Completion plain = complete(*guessing_, request);
  request.sampling.explain = true;
  std::vector<TokenExplanation> explanations;
  const auto explained = guessing_->generate(request, [&](const TokenEvent& event) {
    if (event.explanation) explanations.push_back(*event.explanation);
  });
  ASSERT_TRUE(explained.has_value());
  testing::expect_same(*explained, plain, "explained");
  ASSERT_EQ(explanations.size(), plain.tokens.size());
  ASSERT_EQ(explanations[0].stages.size(), 3u);
  EXPECT_EQ(explanations[0].stages[0].name, "logits");
  EXPECT_EQ(explanations[0].stages[0].n_left, 320);
  EXPECT_EQ(explanations[0].stages[2].name, "top_k");
  EXPECT_EQ(explanations[0].stages[2].n_left, 20);
}

}  // namespace
}  // namespace candor
