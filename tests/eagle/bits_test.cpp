// An EAGLE-3 head changes how many tokens a step gives, and nothing else, whatever it says.

#include "eagle_golden.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;

class EagleBitsTest : public ::testing::TestWithParam<const char*> {
 protected:
  EagleBitsTest() {
    options_ = testing::options_for(testing::eagle_target());
    options_.n_ctx = 160;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};  // rows are free: drafts are made
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kEagle;
    options_.draft_path = testing::eagle_folder(GetParam());
  }
  static std::vector<Request> requests() {
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 9; ++seed) {
      requests.push_back(sampled(testing::token_prompt(3 + 13 * static_cast<int32_t>(seed), 288, seed), 40, seed));
      Request& request = requests.back();
      request.sampling.ignore_eos = true;
      if (seed % 2 == 0) request.sampling.temperature = 0.0;
      if (seed == 1) request.sampling.frequency_penalty = 0.5;
      if (seed == 3) request.sampling.max_tokens.reset();  // until the context is full
      if (seed == 4) request.constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
      if (seed == 5) request.on_context_full = OnContextFull::kCrop;
      if (seed == 5) request.sampling.max_tokens = 200;
      if (seed == 6) request.beams = BeamSearch{.width = 2};
      if (seed == 7) request.sampling.temperature = 0.8;
    }
    return requests;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
};

TEST_P(EagleBitsTest, answers_are_those_of_plain_decoding) {
  const auto drafting = testing::open_or_fail(options_);
  EXPECT_EQ(drafting->info().drafters, (std::vector{DraftSource::kNgram, DraftSource::kEagle}));
  int64_t n_drafted = 0;
  for (int round = 0; round < 2; ++round) {  // in the second the prompts are in the cache, without vectors
    const auto asked = requests();
    for (size_t i = 0; i < asked.size(); ++i) {
      const Completion found = complete(*drafting, asked[i]);
      testing::expect_same(found, complete(*plain_, asked[i]), "request " + std::to_string(i));
      n_drafted += found.summary.usage.drafted_tokens;
    }
  }
  EXPECT_GT(n_drafted, 40);
}

TEST_P(EagleBitsTest, many_at_once_get_their_own_answers) {
  options_.max_running = 3;  // the slots go from one to the next
  options_.n_threads = 2;
  const auto drafting = testing::open_or_fail(options_);
  const auto asked = requests();
  const auto together = testing::Crowd(*drafting).run(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, asked[i]), "request " + std::to_string(i));
  }
  EXPECT_EQ(drafting->stats().kv_blocks_used, 0);
}

TEST_P(EagleBitsTest, requests_that_lose_their_blocks_get_their_own_answers) {
  options_.n_ctx = 128;
  options_.kv_blocks = 6;
  const auto drafting = testing::open_or_fail(options_);
  std::vector<Request> asked;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    asked.push_back(sampled(testing::token_prompt(30, 288, seed), 70, seed));
    asked.back().sampling.ignore_eos = true;
  }
  const auto together = testing::Crowd(*drafting).run(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, asked[i]), "request " + std::to_string(i));
  }
  EXPECT_GT(drafting->stats().n_preemptions, 0);
}

INSTANTIATE_TEST_SUITE_P(heads, EagleBitsTest, ::testing::Values("specforge", "speculators", "trained"),
                         [](const auto& name) { return std::string(name.param); });

// Which knows the answers to four prompts, of which it drafts the first token right.
TEST(eagle, a_trained_head_is_mostly_right) {
  std::ifstream stream(testing::eagle_folder("trained") / "expected.json");
  const auto expected = nlohmann::json::parse(stream);
  const auto n_prompt = expected.at("prompt").get<size_t>();
  EngineOptions options = testing::options_for(testing::eagle_target());
  options.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  const auto plain = testing::open_or_fail(options);
  options.speculation = Speculation::kEagle;
  options.draft_path = testing::eagle_folder("trained");
  options.ngrams_beside = false;
  const auto drafting = testing::open_or_fail(options);
  int64_t n_accepted = 0;
  int64_t n_made = 0;
  for (const auto& text : expected.at("texts")) {
    const auto tokens = text.get<std::vector<TokenId>>();
    const auto n_answer = static_cast<int64_t>(tokens.size() - n_prompt);
    Request request =
        testing::greedy(TokenPrompt(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(n_prompt)), n_answer);
    request.sampling.ignore_eos = true;
    const Completion found = complete(*drafting, request);
    testing::expect_same(found, complete(*plain, request), "a text that it learned");
    n_accepted += found.summary.usage.accepted_tokens;
    n_made += n_answer;
    request.sampling.temperature = 0.8;
    request.sampling.seed = 7;
    testing::expect_same(complete(*drafting, request), complete(*plain, request), "drawn");
  }
  EXPECT_GT(4 * n_accepted, n_made);
}

TEST(eagle, the_memory_plan_counts_it) {
  EngineOptions options = testing::options_for(testing::eagle_target());
  const auto plain = Engine::plan(options);
  options.speculation = Speculation::kEagle;
  options.draft_path = testing::eagle_folder("specforge");
  const auto planned = Engine::plan(options);
  ASSERT_TRUE(plain && planned);
  const auto vectors = uint64_t{2} * 128 * 3 * 64 * sizeof(float) * static_cast<uint64_t>(options.max_running);
  EXPECT_GT(planned->draft_bytes, vectors);
  EXPECT_GT(planned->scratch_bytes, plain->scratch_bytes);
  EXPECT_GE(planned->total_bytes(), plain->total_bytes() + planned->draft_bytes);
}

}  // namespace
}  // namespace candor
