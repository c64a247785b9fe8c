// A model with recurrent layers takes the beginnings of prompts from the prefix cache like any other: as far as a state
// was kept, and with the bits of reading them.

#include "engine/engine_impl.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::expect_same;
using testing::sampled;
using testing::token_prompt;

class Checkpoints : public testing::TinyModelTest {
 protected:
  Checkpoints() : options_(testing::options_for(testing::goldens() / "qwen3_5_text/model.gguf")) {
    options_.n_ctx = 256;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 9.0}}, .attend_ns = 10};
    EngineOptions cold = options_;
    cold.prefix_cache = false;
    cold_ = testing::open_or_fail(cold);
  }
  void open() { warm_ = testing::open_or_fail(options_); }
  TokenPrompt text(int32_t n, uint64_t seed) { return token_prompt(n, cold_->info().n_vocab, seed); }
  static TokenPrompt joined(TokenPrompt a, const std::vector<TokenId>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  static Request asking(const TokenPrompt& prompt, int64_t n_new = 8) {
    Request request = sampled(prompt, n_new, prompt.size());
    request.sampling.ignore_eos = true;
    return request;
  }
  // The answer of the engine that knows what came before; it is that of the one which knows nothing.
  Completion ask(const Request& request) {
    Completion found = complete(*warm_, request);
    const Completion expected = complete(*cold_, request);
    expect_same(found, expected, std::to_string(request.sampling.seed.value_or(0)) + " tokens");
    EXPECT_EQ(found.more_choices.size(), expected.more_choices.size());
    for (size_t i = 0; i < found.more_choices.size(); ++i) {
      EXPECT_EQ(found.more_choices[i].tokens, expected.more_choices[i].tokens);
      EXPECT_TRUE(found.more_choices[i].logprobs == expected.more_choices[i].logprobs);
    }
    EXPECT_EQ(expected.summary.usage.cached_tokens, 0);
    return found;
  }
  int64_t n_cached(const Request& request) { return ask(request).summary.usage.cached_tokens; }

  EngineOptions options_;
  std::unique_ptr<Engine> cold_;
  std::unique_ptr<Engine> warm_;
};

TEST_F(Checkpoints, let_the_next_turn_of_a_chat_go_on_behind_the_answer) {
  open();
  TokenPrompt chat = text(40, 1);
  for (const int64_t expected : {0, 64, 96, 160}) {
    const Completion turn = ask(asking(chat, 33));
    EXPECT_EQ(turn.summary.usage.cached_tokens, expected);
    chat = joined(joined(chat, turn.tokens), text(11, 2));
  }
  EXPECT_EQ(n_cached(asking(chat, 1)), 192);
}

TEST_F(Checkpoints, let_a_prompt_begin_where_others_parted_from_it) {
  open();
  const TokenPrompt system = text(100, 1);
  EXPECT_EQ(n_cached(asking(joined(system, text(60, 2)))), 0);
  EXPECT_EQ(n_cached(asking(joined(system, text(60, 3)))), 64);
  EXPECT_EQ(n_cached(asking(joined(system, text(60, 4)))), 96);
  EXPECT_EQ(n_cached(asking(joined(system, text(60, 4)))), 128);
}

TEST_F(Checkpoints, are_shared_by_choices_and_beams) {
  open();
  const TokenPrompt prompt = text(90, 5);
  Request choices = asking(prompt, 40);
  choices.n = 4;
  EXPECT_EQ(n_cached(choices), 0);
  EXPECT_EQ(n_cached(choices), 64);
  Request beams = asking(prompt, 40);
  beams.beams = BeamSearch{.width = 3};
  EXPECT_EQ(n_cached(beams), 64);
  EXPECT_EQ(warm_->stats().state_slots_used, 0);
}

TEST_F(Checkpoints, of_another_scope_are_not_found) {
  open();
  Request request = asking(text(90, 6));
  request.scheduling.cache_scope = "one";
  EXPECT_EQ(n_cached(request), 0);
  request.scheduling.cache_scope = "another";
  EXPECT_EQ(n_cached(request), 0);
  EXPECT_EQ(n_cached(request), 64);
}

TEST_F(Checkpoints, are_counted_and_nothing_is_held_in_the_end) {
  open();
  EXPECT_EQ(warm_->stats().checkpoints, 0);
  complete(*warm_, asking(text(90, 7)));
  const EngineStats stats = warm_->stats();
  EXPECT_GT(stats.checkpoints, 0);
  EXPECT_LT(stats.checkpoints, stats.state_slots_total);
  EXPECT_EQ(stats.state_slots_used, 0);
}

TEST_F(Checkpoints, are_counted_in_the_memory_plan) {
  const auto plan = Engine::plan(options_);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->kept_states, 64);
  EXPECT_EQ(plan->state_slots, 2 * options_.max_running + 64);
  options_.kept_states = 5;
  const auto smaller = Engine::plan(options_);
  ASSERT_TRUE(smaller.has_value());
  EXPECT_EQ(smaller->kept_states, 5);
  EXPECT_EQ(plan->total_bytes() - smaller->total_bytes(),
            59 * plan->state_bytes / static_cast<uint64_t>(plan->state_slots));
  options_.prefix_cache = false;
  EXPECT_EQ(Engine::plan(options_)->kept_states, 0);
  options_.kept_states = -1;
  EXPECT_NE(Engine::open(options_).error().message.find("kept_states is -1"), std::string::npos);
}

TEST_F(Checkpoints, give_way_where_every_slot_is_wanted) {
  options_.max_running = 2;
  options_.kept_states = 0;
  open();
  const TokenPrompt chat = text(90, 8);
  complete(*warm_, asking(chat));
  EXPECT_GT(warm_->stats().checkpoints, 0);
  const auto together = testing::Crowd(*warm_).run({asking(text(80, 9), 60), asking(text(81, 10), 60)});
  for (uint64_t i = 0; i < 2; ++i) {
    expect_same(together[i], complete(*cold_, asking(text(80 + static_cast<int32_t>(i), 9 + i), 60)), "beside another");
  }
  n_cached(asking(chat));
  EXPECT_LE(warm_->stats().checkpoints, 4);
  EXPECT_EQ(warm_->stats().state_slots_used, 0);
}

TEST_F(Checkpoints, go_with_the_blocks_that_hundreds_of_other_prompts_take) {
  options_.kv_blocks = 24;
  open();
  for (uint64_t seed = 0; seed < 300; ++seed) {
    complete(*warm_, asking(text(33 + static_cast<int32_t>(seed % 90), 100 + seed), 2));
    EXPECT_LE(warm_->stats().checkpoints, warm_->stats().kv_blocks_cached);
  }
  for (uint64_t seed = 290; seed < 300; ++seed) ask(asking(text(33 + static_cast<int32_t>(seed % 90), 100 + seed), 2));
  EXPECT_EQ(warm_->stats().state_slots_used, 0);
  EXPECT_EQ(warm_->stats().kv_blocks_used, 0);
}

}  // namespace
}  // namespace candor
