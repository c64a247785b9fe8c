// Draft models with recurrent layers: what was drafted and rejected leaves no trace in the state that they go on from.

#include "engine_fixture.h"

namespace candor::draft_tests {
namespace {

using testing::complete;
using testing::expect_same;
using testing::sampled;

std::filesystem::path golden(const std::string& family) {
  return testing::goldens() / family / "model.gguf";
}

class RecurrentDraft : public ::testing::Test {
 protected:
  void open(const std::filesystem::path& model, const std::filesystem::path& draft, bool ngrams_beside = false) {
    options_ = testing::options_for(model);
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};  // rows are free: drafts are made
    plain_ = testing::open_or_fail(options_);
    options_.speculation = Speculation::kDraft;
    options_.draft_path = draft;
    options_.ngrams_beside = ngrams_beside;
    drafting_ = testing::open_or_fail(options_);
    ASSERT_TRUE(plain_ && drafting_);
  }
  std::vector<Request> requests() const {
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      const auto prompt = testing::token_prompt(3 + 8 * static_cast<int32_t>(seed), plain_->info().n_vocab, seed);
      requests.push_back(sampled(prompt, 50, seed));
      requests.back().sampling.ignore_eos = true;
      if (seed % 2 == 0) requests.back().sampling.temperature = 0.0;
      if (seed == 1) requests.back().sampling.frequency_penalty = 0.5;
      if (seed == 3) requests.back().sampling.max_tokens.reset();  // until the context is full
      if (seed == 4) requests.back().constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
      if (seed == 5) requests.back().n = 3;
    }
    return requests;
  }

  EngineOptions options_;
  std::unique_ptr<Engine> plain_;
  std::unique_ptr<Engine> drafting_;
};

TEST_F(RecurrentDraft, a_twin_drafts_every_token_right_alone_and_in_company) {
  open(golden("qwen3_5_text"), golden("qwen3_5_text"));
  const auto asked = requests();
  std::vector<Completion> expected;
  for (const Request& request : asked) expected.push_back(complete(*plain_, request));
  for (size_t i = 0; i < asked.size(); ++i) {
    const Completion found = complete(*drafting_, asked[i]);
    expect_same(found, expected[i], "request " + std::to_string(i));
    if (i == 3) continue;  // in a full context the twin has moved its window
    const Usage& usage = found.summary.usage;
    // Drafts behind the last token of an answer are the only ones that are not used.
    EXPECT_GE(usage.accepted_tokens + asked[i].n * 15, usage.drafted_tokens) << i;
    EXPECT_GE(2 * usage.accepted_tokens, usage.completion_tokens) << i;
  }
  const auto together = testing::Crowd(*drafting_).run(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    expect_same(together[i], expected[i], "together, request " + std::to_string(i));
  }
}

// Another model's drafts are mostly wrong, so that states are gone back to; the model that is drafted for has states of
// its own, or none.
TEST_F(RecurrentDraft, answers_are_those_of_plain_decoding_whatever_is_drafted) {
  for (const auto& [model, ngrams_beside] : {std::pair("qwen3", false), {"qwen3_next", false}, {"qwen3_next", true}}) {
    open(golden(model), golden("qwen3_5_text"), ngrams_beside);
    const auto asked = requests();
    int64_t n_rejected = 0;
    for (int round = 0; round < 2; ++round) {
      const auto together = testing::Crowd(*drafting_).run(asked);
      for (size_t i = 0; i < asked.size(); ++i) {
        expect_same(together[i], complete(*plain_, asked[i]), std::string(model) + ", request " + std::to_string(i));
        n_rejected += together[i].summary.usage.drafted_tokens - together[i].summary.usage.accepted_tokens;
      }
    }
    EXPECT_GT(n_rejected, 20) << model;
  }
}

TEST_F(RecurrentDraft, the_memory_plan_counts_its_states) {
  open(golden("qwen3"), golden("qwen3_5_text"));
  const auto with_16 = Engine::plan(options_);
  options_.max_running = 15;
  const auto with_15 = Engine::plan(options_);
  ASSERT_TRUE(with_16 && with_15);
  EngineOptions own = testing::options_for(golden("qwen3_5_text"));
  const auto states = Engine::plan(own);
  ASSERT_TRUE(states);
  const uint64_t slot_bytes = states->state_bytes / static_cast<uint64_t>(states->state_slots);
  EXPECT_GT(slot_bytes, 0u);
  EXPECT_GE(with_16->draft_bytes - with_15->draft_bytes, 2 * slot_bytes);
}

}  // namespace
}  // namespace candor::draft_tests
