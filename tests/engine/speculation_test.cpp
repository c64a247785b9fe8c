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
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};  // rows are free: drafts are made
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kNgram;
    drafting_ = testing::open_or_fail(options_);
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
  std::unique_ptr<Engine> drafting_;
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
      const Completion found = complete(*drafting_, request);
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
  EXPECT_EQ(complete(*drafting_, request).summary.usage.drafted_tokens, 0);
}

TEST_F(SpeculationTest, several_requests_and_choices_at_once_get_their_own_answers) {
  std::vector<Request> requests;
  for (uint64_t seed = 0; seed < 8; ++seed) requests.push_back(repeating(seed % 2 == 0 ? 0.0 : 0.7, seed));
  const auto together = testing::Crowd(*drafting_).run(requests);
  for (size_t i = 0; i < requests.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, requests[i]), "request " + std::to_string(i));
  }
  EXPECT_EQ(drafting_->stats().kv_blocks_used, 0);
}

TEST_F(SpeculationTest, a_stop_inside_accepted_drafts_ends_the_answer_there) {
  Request request = repeating(0.0, 4);
  const Completion whole = complete(*plain_, request);
  request.sampling.stop_ids = {whole.tokens[17]};
  testing::expect_same(complete(*drafting_, request), complete(*plain_, request), "stop id");
}

TEST_F(SpeculationTest, explanations_show_every_stage_and_change_nothing) {
  Request request = repeating(0.7, 5);
  request.sampling.top_k = 20;
  const Completion plain = complete(*drafting_, request);
  request.sampling.explain = true;
  std::vector<TokenExplanation> explanations;
  const auto explained = drafting_->generate(request, [&](const TokenEvent& event) {
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

// A draft model beside a model of the same vocabulary, its own twin or another one.
class DraftModelTest : public testing::TinyModelTest {
 protected:
  DraftModelTest() {
    options_ = testing::options_for(tiny_path(tiny_options()));
    options_.n_ctx = 96;
    options_.ngrams_beside = false;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
    plain_ = testing::open_or_fail(options_);
  }
  std::unique_ptr<Engine> open_with(const std::filesystem::path& draft) {
    options_.speculation = Speculation::kDraft;
    options_.draft_path = draft;
    return testing::open_or_fail(options_);
  }
  std::filesystem::path other_model() {
    testing::TinyModelOptions other = tiny_options();
    other.seed = 2;
    other.dim = 32;
    other.n_layers = 1;
    other.context_tokens = 64;  // shorter than the texts: its window must move
    return tiny_path(other);
  }
  static std::vector<Request> requests() {
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      requests.push_back(sampled(testing::token_prompt(3 + 8 * static_cast<int32_t>(seed), 320, seed), 40, seed));
      requests.back().sampling.ignore_eos = true;
      if (seed % 2 == 0) requests.back().sampling.temperature = 0.0;
      if (seed == 1) requests.back().sampling.frequency_penalty = 0.5;
      if (seed == 3) requests.back().sampling.max_tokens.reset();
      if (seed == 4) requests.back().constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
      if (seed == 5) requests.back().n = 3;
    }
    return requests;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
};

void expect_same_choices(const Completion& a, const Completion& b, const std::string& what) {
  testing::expect_same(a, b, what);
  ASSERT_EQ(a.more_choices.size(), b.more_choices.size()) << what;
  for (size_t i = 0; i < a.more_choices.size(); ++i) {
    EXPECT_EQ(a.more_choices[i].tokens, b.more_choices[i].tokens) << what;
    EXPECT_TRUE(a.more_choices[i].logprobs == b.more_choices[i].logprobs) << what;
  }
}

TEST_F(DraftModelTest, answers_are_those_of_plain_decoding_whatever_the_draft_model_says) {
  const auto drafting = open_with(other_model());
  int64_t n_drafted = 0;
  const auto asked = requests();
  for (size_t i = 0; i < asked.size(); ++i) {
    const Completion found = complete(*drafting, asked[i]);
    expect_same_choices(found, complete(*plain_, asked[i]), "request " + std::to_string(i));
    n_drafted += found.summary.usage.drafted_tokens;
  }
  EXPECT_GT(n_drafted, 20);
}

TEST_F(DraftModelTest, a_twin_drafts_every_token_right_greedy_sampled_and_constrained) {
  const auto drafting = open_with(options_.model_path);
  const auto asked = requests();
  for (size_t i = 0; i < asked.size(); ++i) {
    if (i == 3) continue;  // in a full context the twin has moved its window: other positions
    const Completion found = complete(*drafting, asked[i]);
    expect_same_choices(found, complete(*plain_, asked[i]), "request " + std::to_string(i));
    const Usage& usage = found.summary.usage;
    // Drafts behind the last token of an answer are the only ones that are not used.
    EXPECT_GE(usage.accepted_tokens + asked[i].n * 15, usage.drafted_tokens) << i;
    EXPECT_GE(2 * usage.accepted_tokens, usage.completion_tokens) << i;
  }
}

TEST_F(DraftModelTest, drafts_pay_for_what_the_draft_model_looks_back_at) {
  Request request = requests()[4];
  request.constraint.reset();
  request.sampling.max_tokens = 60;
  EXPECT_GT(complete(*open_with(options_.model_path), request).summary.usage.drafted_tokens, 0);
  // To check a draft adds more than a step, and to make it as much again: within 60 tokens the ledger, which has a
  // step and a hundredth of each, cannot pay for both.
  options_.costs->attend_ns = 40'000.0;
  EXPECT_EQ(complete(*open_with(options_.model_path), request).summary.usage.drafted_tokens, 0);
}

TEST_F(DraftModelTest, many_at_once_get_their_own_answers) {
  const auto drafting = open_with(other_model());
  auto asked = requests();
  asked.pop_back();  // a crowd follows single choices
  const auto together = testing::Crowd(*drafting).run(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, asked[i]), "request " + std::to_string(i));
  }
  EXPECT_EQ(drafting->stats().kv_blocks_used, 0);
}

TEST_F(DraftModelTest, another_vocabulary_is_refused_by_the_first_token_that_differs) {
  testing::TinyModelOptions wider = tiny_options();
  wider.vocab = 330;
  options_.speculation = Speculation::kDraft;
  options_.draft_path = tiny_path(wider);
  const auto engine = Engine::open(options_);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().kind, ErrorKind::kInvalidInput);
  EXPECT_NE(engine.error().message.find("a vocabulary of 330 tokens, but the model's has 320"), std::string::npos)
      << engine.error().message;
}

TEST_F(DraftModelTest, a_draft_model_is_given_exactly_where_it_is_used) {
  options_.speculation = Speculation::kDraft;
  EXPECT_NE(Engine::open(options_).error().message.find("draft_path"), std::string::npos);
  options_.speculation = Speculation::kNgram;
  options_.draft_path = options_.model_path;
  EXPECT_NE(Engine::open(options_).error().message.find("draft_path"), std::string::npos);
}

TEST_F(DraftModelTest, the_memory_plan_counts_it) {
  const auto plain = Engine::plan(options_);
  options_.speculation = Speculation::kDraft;
  options_.draft_path = options_.model_path;
  const auto planned = Engine::plan(options_);
  ASSERT_TRUE(plain && planned);
  EXPECT_GT(planned->draft_bytes, planned->weight_bytes);
  EXPECT_GE(planned->total_bytes(), plain->total_bytes() + planned->draft_bytes);
}

}  // namespace
}  // namespace candor
