// Several drafters at once: n-grams beside a head or a draft model. Who drafts changes how many tokens a step gives,
// and nothing else; each drafts where it gains most.

#include <fmt/format.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "backend/wrap/forwarding_backend.h"
#include "engine/engine_impl.h"
#include "engine/open/device_choice.h"
#include "engine_fixture.h"
#include "support/with_head.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;

const DraftUsage& of(const DraftUsages& drafts, DraftSource source) {
  return drafts[static_cast<size_t>(source)];
}

class DraftersTest : public testing::TinyModelTest {
 protected:
  DraftersTest() {
    options_ = testing::options_for(tiny_path(tiny_options()));
    options_.n_ctx = 160;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .draft_ms = 0.01, .draft_read_ms = 0.001};
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kDraft;
    head_path_ = testing::write_head(options_.model_path, folder_.path() / "head.gguf");
    options_.draft_path = head_path_;
  }
  // Greedy ones soon repeat themselves; the prompts of some do.
  static std::vector<Request> requests() {
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 12; ++seed) {
      TokenPrompt prompt = testing::token_prompt(3 + 7 * static_cast<int32_t>(seed), 320, seed);
      if (seed % 3 == 0) prompt.insert(prompt.end(), prompt.begin() + 1, prompt.end());
      requests.push_back(sampled(prompt, 40, seed));
      Request& request = requests.back();
      request.sampling.ignore_eos = true;
      request.sampling.temperature = seed % 3 == 1 ? 0.8 : 0.0;
      if (seed == 2) request.sampling.frequency_penalty = 0.5;
      if (seed == 4) request.constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
      if (seed == 5) request.constraint = {GrammarKind::kRegex, "(abc abd ){1,12}"};
      if (seed == 6) request.on_context_full = OnContextFull::kCrop;
      if (seed == 6) request.sampling.max_tokens = 200;
      if (seed == 7) request.n = 3;
      if (seed == 8) request.beams = BeamSearch{.width = 2};
      if (seed == 9) request.sampling.speculate = false;
    }
    return requests;
  }
  void expect_plain_answers(Engine& drafting, const std::vector<Request>& asked) {
    const auto together = testing::Crowd(drafting).run(asked);
    for (size_t i = 0; i < asked.size(); ++i) {
      const Completion expected = complete(*plain_, asked[i]);
      testing::expect_same(together[i], expected, "request " + std::to_string(i));
      ASSERT_EQ(together[i].more_choices.size(), expected.more_choices.size());
      for (size_t n = 0; n < expected.more_choices.size(); ++n) {
        EXPECT_EQ(together[i].more_choices[n].tokens, expected.more_choices[n].tokens) << i;
        EXPECT_TRUE(together[i].more_choices[n].logprobs == expected.more_choices[n].logprobs) << i;
      }
    }
    EXPECT_EQ(drafting.stats().kv_blocks_used, 0);
  }

  EngineOptions options_;
  std::filesystem::path head_path_;
  std::unique_ptr<Engine> plain_;
};

TEST_F(DraftersTest, answers_are_those_of_plain_decoding_and_both_draft) {
  for (const bool is_head : {true, false}) {
    if (!is_head) options_.draft_path = options_.model_path;  // a twin
    const auto drafting = testing::open_or_fail(options_);
    const DraftSource other = is_head ? DraftSource::kMtp : DraftSource::kModel;
    EXPECT_EQ(drafting->info().drafters, (std::vector{DraftSource::kNgram, other}));
    expect_plain_answers(*drafting, requests());
    expect_plain_answers(*drafting, requests());  // the prompts are in the cache, without vectors
    const DraftUsages drafts = drafting->metrics().drafts;
    EXPECT_GT(of(drafts, DraftSource::kNgram).drafted_tokens, is_head ? 5 : 0);  // a twin is always right
    EXPECT_GT(of(drafts, other).drafted_tokens, 10) << is_head;
  }
}

TEST_F(DraftersTest, requests_that_lose_their_blocks_get_their_own_answers) {
  options_.n_ctx = 128;
  options_.kv_blocks = 6;
  const auto drafting = testing::open_or_fail(options_);
  std::vector<Request> asked;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    asked.push_back(sampled(testing::token_prompt(30, 320, seed), 70, seed));
    asked.back().sampling.ignore_eos = true;
    asked.back().sampling.temperature = seed % 2 == 0 ? 0.8 : 0.0;
  }
  expect_plain_answers(*drafting, asked);
  EXPECT_GT(drafting->stats().n_preemptions, 0);
}

TEST_F(DraftersTest, figures_of_a_request_add_up) {
  const auto drafting = testing::open_or_fail(options_);
  int64_t n_drafted = 0;
  for (const Request& request : requests()) {
    const Usage usage = complete(*drafting, request).summary.usage;
    DraftUsage sum;
    for (const DraftUsage& drafts : usage.drafts) sum += drafts;
    EXPECT_EQ(sum.drafted_tokens, usage.drafted_tokens);
    EXPECT_EQ(sum.accepted_tokens, usage.accepted_tokens);
    EXPECT_GE(sum.plain_ms, 0.99 * static_cast<double>(sum.n_steps));  // a step takes 1 ms, by the costs given
    EXPECT_LE(sum.saved_ms, sum.plain_ms * 15);
    EXPECT_EQ(usage.drafts[static_cast<size_t>(DraftSource::kPrediction)].n_steps, 0);
    n_drafted += usage.drafted_tokens;
  }
  DraftUsage all;
  for (const DraftUsage& drafts : drafting->metrics().drafts) all += drafts;
  EXPECT_EQ(all.drafted_tokens, n_drafted);
  EXPECT_GT(all.gain(), 0.0);
}

TEST_F(DraftersTest, what_callers_predict_is_counted_as_theirs) {
  const auto drafting = testing::open_or_fail(options_);
  Request request = requests()[1];
  const Completion expected = complete(*plain_, request);
  request.predicted = {expected.tokens};
  const Completion found = complete(*drafting, request);
  testing::expect_same(found, expected, "predicted");
  const Usage& usage = found.summary.usage;
  EXPECT_GT(of(usage.drafts, DraftSource::kPrediction).accepted_tokens, 30);
  EXPECT_EQ(of(usage.drafts, DraftSource::kPrediction).drafted_tokens, usage.drafted_tokens);
}

TEST_F(DraftersTest, one_may_draft_alone) {
  options_.ngrams_beside = false;
  EXPECT_EQ(testing::open_or_fail(options_)->info().drafters, std::vector{DraftSource::kMtp});
  options_.speculation = Speculation::kNgram;
  options_.draft_path.clear();
  EXPECT_EQ(testing::open_or_fail(options_)->info().drafters, std::vector{DraftSource::kNgram});
  options_.speculation = Speculation::kOff;
  options_.ngrams_beside = true;
  EXPECT_TRUE(testing::open_or_fail(options_)->info().drafters.empty());
}

// Requests that are cancelled at any token, some of them while they fork, beside others that go on.
TEST_F(DraftersTest, cancelled_requests_leave_the_others_their_answers) {
  const auto drafting = testing::open_or_fail(options_);
  const auto asked = requests();
  for (int round = 0; round < 6; ++round) {
    std::vector<std::promise<void>> ended(asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      const int last = 1 + (static_cast<int>(i) * 5 + round * 7) % 30;
      const auto n_events = std::make_shared<int>(0);
      const auto id = drafting->submit(asked[i], [&, i, last, n_events](const TokenEvent& event) {
        if (++*n_events == last) static_cast<void>(drafting->cancel(event.request));
        if (event.summary) ended[i].set_value();
      });
      ASSERT_TRUE(id.has_value()) << id.error().message;
    }
    const Completion beside = complete(*drafting, asked[3]);
    for (std::promise<void>& end : ended) end.get_future().wait();
    testing::expect_same(beside, complete(*plain_, asked[3]), "beside");
  }
  expect_plain_answers(*drafting, asked);
}

// Steps of the head meet an exception now and again.
class FailingHead final : public backend::ForwardingBackend {
 public:
  FailingHead(std::unique_ptr<backend::Backend> inner, std::atomic<int>& n_steps)
      : ForwardingBackend(std::move(inner)), n_steps_(n_steps) {}

  void begin_step(const backend::StepBatch& batch, backend::KvStore& kv) override {
    if (!batch.vector_rows.empty() && ++n_steps_ % 7 == 0) throw std::runtime_error("no drafts, please");
    ForwardingBackend::begin_step(batch, kv);
  }

 private:
  std::atomic<int>& n_steps_;
};

TEST_F(DraftersTest, an_exception_in_one_leaves_all_of_them_fit) {
  std::atomic<int> n_steps = 0;
  const auto make = [&](const EngineOptions& options) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(auto inner, engine::make_named_backend(options));
    return std::make_unique<FailingHead>(std::move(inner), n_steps);
  };
  const auto drafting = engine::open_with_backend(options_, make);
  ASSERT_TRUE(drafting) << drafting.error().message;
  expect_plain_answers(**drafting, requests());
  EXPECT_GT((*drafting)->metrics().n_faults, 3u);
  EXPECT_GT(of((*drafting)->metrics().drafts, DraftSource::kNgram).drafted_tokens, 0);
  EXPECT_GT(of((*drafting)->metrics().drafts, DraftSource::kMtp).drafted_tokens, 0);
}

// The shipped model and its head: a story says nothing twice, a rhyme that has to be repeated says little else.
class WinnersTest : public ::testing::Test {
 protected:
  WinnersTest() {
    options_ = testing::options_for(testing::project_file("models/pocket/pocket-q8_0.gguf"));
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.4}}, .draft_ms = 0.1, .draft_read_ms = 0.01};
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kAuto;
    drafting_ = testing::open_or_fail(options_);
    options_.ngrams_beside = false;
    alone_ = testing::open_or_fail(options_);
  }
  Usage usage_of(Engine& engine, const Request& request) {
    const Completion found = complete(engine, request);
    testing::expect_same(found, complete(*plain_, request), "one answer");
    return found.summary.usage;
  }
  // Tokens for the time, as a ratio to those without drafts, by the costs given: a plain step takes 1 ms.
  static double gain(const Usage& usage) {
    const auto plain_ms = static_cast<double>(usage.completion_tokens);
    double ms = plain_ms;
    for (const DraftUsage& drafts : usage.drafts) ms += drafts.added_ms - drafts.saved_ms;
    return plain_ms / ms;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
  std::unique_ptr<Engine> drafting_;
  std::unique_ptr<Engine> alone_;  // the head without n-grams
};

TEST_F(WinnersTest, n_grams_draft_what_repeats_and_the_head_what_does_not) {
  Request story;
  story.prompt = ChatPrompt{{{"user", "Tell me a story about a fox."}}};
  story.sampling.temperature = 0.8;
  story.sampling.seed = 3;
  story.sampling.max_tokens = 120;
  Request rhyme = story;
  rhyme.constraint = {GrammarKind::kRegex, "(The fox and the hen ran to the old red barn[.] ){12}"};
  rhyme.sampling.max_tokens = 200;
  for (int round = 0; round < 3; ++round) {
    const Usage story_usage = usage_of(*drafting_, story), story_alone = usage_of(*alone_, story);
    const Usage rhyme_usage = usage_of(*drafting_, rhyme), rhyme_alone = usage_of(*alone_, rhyme);
    const DraftUsages& of_story = story_usage.drafts;
    const DraftUsages& of_rhyme = rhyme_usage.drafts;
    EXPECT_GT(of(of_story, DraftSource::kMtp).accepted_tokens, 20);
    EXPECT_GT(of(of_story, DraftSource::kMtp).n_steps, 2 * of(of_story, DraftSource::kNgram).n_steps);
    EXPECT_GT(of(of_story, DraftSource::kMtp).gain(), 1.1);
    EXPECT_GT(of(of_rhyme, DraftSource::kNgram).accepted_tokens, 60);
    EXPECT_GT(of(of_rhyme, DraftSource::kNgram).accepted_tokens, of(of_rhyme, DraftSource::kMtp).accepted_tokens);
    EXPECT_GT(of(of_rhyme, DraftSource::kNgram).gain(), 1.5);
    EXPECT_GT(gain(rhyme_usage), 1.1 * gain(rhyme_alone));
    EXPECT_GT(gain(story_usage), 0.95 * gain(story_alone));
    const auto told = [](const Usage& both, const Usage& alone) {
      return fmt::format("{:.2f} x, {:.2f} x by the head alone", gain(both), gain(alone));
    };
    RecordProperty("story" + std::to_string(round), told(story_usage, story_alone));
    RecordProperty("rhyme" + std::to_string(round), told(rhyme_usage, rhyme_alone));
  }
}

}  // namespace
}  // namespace candor
