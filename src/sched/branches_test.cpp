// Sequences that fork, pause, draft and roll back.

#include "sched/test_driver.h"

namespace candor::sched {
namespace {

constexpr StepBudget kBudget{.max_rows = 16, .max_prefill_rows = 16, .max_out_rows = 12};

// Steps by hand: every sequence goes on with what the model says, but those that the test pauses.
class Branches : public ::testing::Test {
 protected:
  void open(const SchedulerOptions& options) {
    options_ = options;
    scheduler_ = std::make_unique<Scheduler>(options);
    model_ = std::make_unique<FakeModel>(options.n_blocks, options.block_tokens);
  }

  // The state after the last row of each sequence that has one; all of them are paused.
  std::map<SequenceId, uint64_t> step_and_hold() {
    const StepPlan& plan = scheduler_->plan(kBudget);
    n_rows_ = plan.batch().n_rows();
    const auto states = model_->run(plan);
    std::map<SequenceId, uint64_t> result;
    std::vector<Outcome> outcomes;
    for (const PlannedSlice& slice : plan.slices) {
      if (slice.n_out == 0) continue;
      result[slice.sequence->id] = states[static_cast<size_t>(slice.out_row)];
      outcomes.push_back({slice.sequence->id, {}, false});
    }
    scheduler_->commit(outcomes);
    return result;
  }

  static uint64_t state_of(std::span<const TokenId> text) {
    uint64_t state = 0;
    for (size_t i = 0; i < text.size(); ++i) state = FakeModel::push(state, text[i], static_cast<int32_t>(i));
    return state;
  }

  SchedulerOptions options_ = small_options();
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<FakeModel> model_;
  int32_t n_rows_ = 0;
};

TEST_F(Branches, forks_of_a_prompt_compute_it_once_and_share_its_blocks) {
  open(small_options());
  ASSERT_TRUE(scheduler_->add({.id = 1, .prompt = std::vector<TokenId>(14, 3)}).has_value());
  ASSERT_EQ(step_and_hold().size(), 1u);
  const int32_t n_used = scheduler_->blocks().pool().n_used();
  for (SequenceId child = 2; child <= 4; ++child) scheduler_->fork(1, child);
  EXPECT_EQ(scheduler_->blocks().pool().n_used(), n_used);
  for (SequenceId id = 1; id <= 4; ++id) scheduler_->append(id, static_cast<TokenId>(id));
  const auto states = step_and_hold();
  EXPECT_EQ(n_rows_, 4);
  EXPECT_EQ(scheduler_->blocks().pool().n_used(), n_used + 3);  // the last block, half full, became one for each
  for (SequenceId id = 1; id <= 4; ++id) {
    std::vector<TokenId> text(14, 3);
    text.push_back(static_cast<TokenId>(id));
    EXPECT_EQ(states.at(id), state_of(text)) << id;
    EXPECT_TRUE(scheduler_->remove(id));
  }
  expect_nothing_is_held(*scheduler_);
}

TEST_F(Branches, a_sequence_that_holds_is_left_alone_until_it_gets_a_token) {
  open(small_options());
  ASSERT_TRUE(scheduler_->add({.id = 1, .prompt = {1, 2, 3}}).has_value());
  step_and_hold();
  EXPECT_TRUE(scheduler_->plan(kBudget).is_empty());
  EXPECT_FALSE(scheduler_->is_idle());
  scheduler_->commit({});
  scheduler_->append(1, 9);
  EXPECT_EQ(step_and_hold().at(1), state_of(std::vector<TokenId>{1, 2, 3, 9}));
}

TEST_F(Branches, a_fork_that_finds_no_place_waits_and_says_the_same) {
  SchedulerOptions options = small_options();
  options.max_running = 2;
  open(options);
  ASSERT_TRUE(scheduler_->add({.id = 1, .prompt = {5, 6, 7, 8, 9}}).has_value());
  step_and_hold();
  for (SequenceId child = 2; child <= 3; ++child) scheduler_->fork(1, child);
  EXPECT_EQ(scheduler_->n_running(), 2);
  EXPECT_EQ(scheduler_->n_waiting(), 1);
  for (SequenceId id = 1; id <= 3; ++id) scheduler_->append(id, static_cast<TokenId>(id));
  step_and_hold();
  scheduler_->remove(1);
  EXPECT_EQ(step_and_hold().at(3), state_of(std::vector<TokenId>{5, 6, 7, 8, 9, 3}));
}

TEST_F(Branches, holders_give_way_to_those_that_everyone_waits_for) {
  SchedulerOptions options = small_options();
  options.n_ctx = 3 * options.block_tokens;
  options.n_blocks = 4;
  open(options);
  const std::vector<TokenId> text(static_cast<size_t>(2 * options.block_tokens - 1), 3);
  ASSERT_TRUE(scheduler_->add({.id = 1, .prompt = text, .n_places = 3}).has_value());
  step_and_hold();
  for (SequenceId child = 2; child <= 3; ++child) scheduler_->fork(1, child);
  std::map<SequenceId, std::vector<TokenId>> texts = {{1, text}, {2, text}, {3, text}};
  for (TokenId token = 4; token < 9; ++token) {
    for (auto& [id, so_far] : texts) {
      so_far.push_back(token + static_cast<TokenId>(id));
      scheduler_->append(id, so_far.back());
    }
    std::map<SequenceId, uint64_t> states;
    for (int n_steps = 0; states.size() < texts.size(); ++n_steps) {
      ASSERT_LT(n_steps, 50) << "nothing moves";
      states.merge(step_and_hold());
    }
    for (const auto& [id, state] : states) EXPECT_EQ(state, state_of(texts.at(id))) << id;
  }
  for (const auto& [id, so_far] : texts) EXPECT_TRUE(scheduler_->remove(id));
  expect_nothing_is_held(*scheduler_);
}

TEST_F(Branches, places_kept_at_admission_are_there_for_the_forks) {
  SchedulerOptions options = small_options();
  options.max_running = 4;
  open(options);
  ASSERT_TRUE(scheduler_->add({.id = 1, .prompt = {1}, .n_places = 3}).has_value());
  ASSERT_TRUE(scheduler_->add({.id = 10, .prompt = {2}}).has_value());
  ASSERT_TRUE(scheduler_->add({.id = 11, .prompt = {3}}).has_value());
  EXPECT_EQ(step_and_hold().size(), 2u);
  scheduler_->fork(1, 2);
  scheduler_->fork(1, 3);
  EXPECT_EQ(scheduler_->n_running(), 4);
  EXPECT_EQ(scheduler_->n_waiting(), 1);
}

// Beams as a caller would run them: all pause, the best continuations go on, the others are dropped.
TEST_F(Branches, beams_fork_and_drop_at_every_step_and_leak_nothing) {
  for (const int32_t n_blocks : {64, 17}) {
    SchedulerOptions options = small_options();
    options.n_blocks = n_blocks;
    open(options);
    ASSERT_TRUE(scheduler_->add({.id = 0, .prompt = std::vector<TokenId>(9, 4), .n_places = 4}).has_value());
    std::map<SequenceId, std::vector<TokenId>> texts = {{0, std::vector<TokenId>(9, 4)}};
    std::mt19937 random(3);
    SequenceId next_id = 1;
    for (int n_steps = 0; n_steps < 40; ++n_steps) {
      std::map<SequenceId, uint64_t> states;
      while (states.size() < texts.size()) states.merge(step_and_hold());
      for (const auto& [id, state] : states) EXPECT_EQ(state, state_of(texts.at(id)));
      const SequenceId parent = std::next(texts.begin(), static_cast<int64_t>(random() % texts.size()))->first;
      while (texts.size() > 2) {
        const auto dropped = std::prev(texts.end())->first == parent ? texts.begin() : std::prev(texts.end());
        EXPECT_TRUE(scheduler_->remove(dropped->first));
        texts.erase(dropped);
      }
      while (texts.size() < 4) {
        scheduler_->fork(parent, next_id);
        texts[next_id] = texts.at(parent);
        ++next_id;
      }
      for (auto& [id, text] : texts) {
        text.push_back(static_cast<TokenId>(id % 50));
        scheduler_->append(id, text.back());
      }
    }
    for (const auto& [id, text] : texts) EXPECT_TRUE(scheduler_->remove(id));
    expect_nothing_is_held(*scheduler_);
  }
}

TEST(drafts, drafts_change_how_fast_a_text_comes_and_not_the_text) {
  for (const size_t draft_length : {1u, 3u, 5u}) {
    Driver driver(small_options());
    driver.draft_length = draft_length;
    for (SequenceId id = 0; id < 2; ++id) {
      ASSERT_TRUE(driver.add(id, {.prompt = {static_cast<TokenId>(id), 2, 3}, .n_new = 50}).has_value());
    }
    EXPECT_LT(driver.run({.max_rows = 32, .max_prefill_rows = 16, .max_out_rows = 32}), 45);
    EXPECT_GT(driver.n_accepted_drafts, 10);
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
  }
}

TEST(drafts, in_small_pools_and_full_contexts_every_text_stays_right) {
  int64_t n_accepted = 0;
  int64_t n_preempted = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    SchedulerOptions options = small_options();
    options.n_blocks = 16 + static_cast<int32_t>(seed % 3);
    options.use_prefix_index = seed % 2 == 0;
    Driver driver(options);
    driver.draft_length = 1 + seed % 4;
    for (SequenceId id = 0; id < 20; ++id) ASSERT_TRUE(driver.add(id, random_job(random, 20, 60)).has_value());
    driver.run({.max_rows = 20, .max_prefill_rows = 16, .max_out_rows = 20});
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
    n_accepted += driver.n_accepted_drafts;
    n_preempted += driver.n_preempted;
  }
  EXPECT_GT(n_accepted, 1000);
  EXPECT_GT(n_preempted, 50);
}

TEST(drafts, without_room_for_its_rows_a_draft_is_left_out) {
  Driver driver(small_options());
  driver.draft_length = 4;
  for (SequenceId id = 0; id < 8; ++id) ASSERT_TRUE(driver.add(id, {.prompt = {1}, .n_new = 10}).has_value());
  driver.run({.max_rows = 8, .max_prefill_rows = 8});
  EXPECT_EQ(driver.n_accepted_drafts, 0);
  driver.expect_all_right();
}

TEST(shown_prompts, every_row_is_shown_once_and_in_order_whatever_happens) {
  std::mt19937 random(11);
  SchedulerOptions options = small_options();
  options.n_blocks = 24;  // too few for all: they preempt each other
  Driver driver(options);
  int64_t n_preempted = 0;
  for (int round = 0; round < 40; ++round) {
    for (SequenceId id = 1; id <= 10; ++id) {
      Job job = random_job(random, 40, 12);
      job.shows_prompt = random() % 2 == 0;
      if (job.shows_prompt) job.on_full = OnContextFull::kStop;
      ASSERT_TRUE(driver.add(id, job, static_cast<int32_t>(random() % 3)).has_value());
      driver.run({.max_rows = 16, .max_prefill_rows = 16, .max_shown_rows = 3}, static_cast<int>(random() % 4));
    }
    EXPECT_LT(driver.run({.max_rows = 16, .max_prefill_rows = 16, .max_shown_rows = 3}), 2000);
    driver.expect_all_right();
    driver.forget();
    n_preempted += std::exchange(driver.n_preempted, 0);
  }
  EXPECT_GT(n_preempted, 0);
}

}  // namespace
}  // namespace candor::sched
