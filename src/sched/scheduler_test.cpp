#include "sched/scheduler.h"

#include <tuple>

#include "sched/test_driver.h"

namespace candor::sched {
namespace {

TEST(scheduler, a_prompt_is_read_in_chunks_and_only_its_last_row_is_chosen_from) {
  Driver driver(small_options());
  Job job{.prompt = std::vector<TokenId>(20, 3), .n_new = 2};
  ASSERT_TRUE(driver.add(1, job).has_value());
  const StepBudget budget{.max_rows = 8, .max_prefill_rows = 8};
  for (const int32_t expected : {8, 8, 4, 1}) {
    const StepPlan& plan = driver.scheduler.plan(budget);
    EXPECT_EQ(plan.batch().n_rows(), expected);
    EXPECT_EQ(plan.out_rows.size(), expected <= 4 ? 1u : 0u);
    driver.step(budget);
  }
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

TEST(scheduler, whole_sequences_are_read_by_one_step_as_many_as_there_are_rows_for) {
  SchedulerOptions options = small_options();
  options.reads_whole = true;
  options.use_prefix_index = false;
  Driver driver(options);
  int n = 0;
  for (const size_t length : {20, 30, 9, 1, 40}) {
    ASSERT_TRUE(driver.add(++n, {.prompt = std::vector<TokenId>(length, 3), .n_new = 1}).has_value());
  }
  const StepBudget budget{.max_rows = 40, .max_prefill_rows = 40, .max_shown_rows = 40};
  for (const int32_t expected : {30, 30, 40}) {  // 20 + 9 + 1, then 30, then 40
    const StepPlan& plan = driver.scheduler.plan(budget);
    EXPECT_EQ(plan.batch().n_rows(), expected);
    EXPECT_EQ(plan.batch().groups.size(), plan.slices.size());
    for (const PlannedSlice& slice : plan.slices) EXPECT_EQ(slice.n_rows, slice.sequence->n_tokens());
    driver.step(budget);
  }
  expect_nothing_is_held(driver.scheduler);
}

TEST(scheduler, decoding_goes_on_while_a_long_prompt_is_read) {
  Driver driver(small_options());
  ASSERT_TRUE(driver.add(1, {.prompt = {1}, .n_new = 30}).has_value());
  driver.step({.max_rows = 8, .max_prefill_rows = 4});
  ASSERT_TRUE(driver.add(2, {.prompt = std::vector<TokenId>(60, 2), .n_new = 2}).has_value());
  for (size_t i = 2; i < 12; ++i) {
    driver.step({.max_rows = 8, .max_prefill_rows = 4});
    EXPECT_EQ(driver.answers[1].size(), i);
  }
  driver.run({.max_rows = 8, .max_prefill_rows = 4});
  driver.expect_all_right();
}

TEST(scheduler, an_equal_beginning_is_computed_once) {
  Driver driver(small_options());
  const Job job{.prompt = std::vector<TokenId>(40, 5), .n_new = 1};
  ASSERT_TRUE(driver.add(1, job).has_value());
  driver.run({});
  EXPECT_EQ(driver.n_rows, 40);
  ASSERT_TRUE(driver.add(2, job).has_value());
  driver.scheduler.plan({});
  EXPECT_EQ(driver.scheduler.find(2)->n_cached, 36);  // whole blocks that leave a token to compute
  driver.run({});
  EXPECT_EQ(driver.n_rows, 44);
  driver.expect_all_right();
}

TEST(scheduler, without_the_cache_everything_is_computed_for_every_token) {
  SchedulerOptions options = small_options();
  options.use_kv_cache = false;
  Driver driver(options);
  ASSERT_TRUE(driver.add(1, {.prompt = std::vector<TokenId>(10, 5), .n_new = 20}).has_value());
  driver.run({.max_rows = 16, .max_prefill_rows = 16});
  driver.expect_all_right();
  int64_t expected = 0;
  for (int64_t n = 10; n < 30; ++n) expected += n;
  EXPECT_EQ(driver.n_rows, expected);
  expect_nothing_is_held(driver.scheduler);
}

TEST(scheduler, a_full_context_is_cropped_to_the_newest_tokens) {
  SchedulerOptions options = small_options();
  options.n_ctx = 10;
  Driver driver(options);
  ASSERT_TRUE(
      driver.add(1, {.prompt = {1, 2, 3, 4, 5, 6, 7}, .n_new = 12, .on_full = OnContextFull::kCrop}).has_value());
  driver.run({});
  EXPECT_EQ(driver.answers[1].size(), 12u);
  driver.expect_all_right();
}

TEST(scheduler, what_does_not_fit_is_refused_with_the_numbers) {
  SchedulerOptions options = small_options();
  options.max_queued = 2;
  Scheduler scheduler(options);
  EXPECT_EQ(scheduler.add({.id = 1}).error().kind, ErrorKind::kInvalidInput);
  const auto too_long = scheduler.add({.id = 2, .prompt = std::vector<TokenId>(65, 1)});
  EXPECT_EQ(too_long.error().kind, ErrorKind::kContextLength);
  EXPECT_NE(too_long.error().message.find("65"), std::string::npos);
  EXPECT_NE(too_long.error().message.find("64"), std::string::npos);
  ASSERT_TRUE(scheduler.add({.id = 3, .prompt = {1}}).has_value());
  ASSERT_TRUE(scheduler.add({.id = 4, .prompt = {1}}).has_value());
  EXPECT_EQ(scheduler.add({.id = 5, .prompt = {1}}).error().kind, ErrorKind::kOverloaded);
  EXPECT_FALSE(scheduler.remove(99));
}

TEST(scheduler, a_removed_sequence_frees_its_blocks_at_once) {
  Driver driver(small_options());
  ASSERT_TRUE(driver.add(1, {.prompt = std::vector<TokenId>(30, 1), .n_new = 10}).has_value());
  ASSERT_TRUE(driver.add(2, {.prompt = std::vector<TokenId>(30, 2), .n_new = 10}).has_value());
  driver.step({});
  EXPECT_GT(driver.scheduler.blocks().pool().n_used(), 0);
  EXPECT_TRUE(driver.scheduler.remove(1));
  EXPECT_TRUE(driver.scheduler.remove(2));
  expect_nothing_is_held(driver.scheduler);
}

TEST(scheduler, in_a_pool_that_is_too_small_for_all_everyone_still_finishes_with_the_same_answer) {
  int64_t n_preempted = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    SchedulerOptions options = small_options();
    options.n_blocks = 16 + static_cast<int32_t>(seed % 3);
    options.use_prefix_index = seed % 2 == 0;
    Driver driver(options);
    for (SequenceId id = 0; id < 30; ++id) ASSERT_TRUE(driver.add(id, random_job(random, 20, 40)).has_value());
    const int n_steps = driver.run({.max_rows = 16, .max_prefill_rows = 16});
    EXPECT_LT(n_steps, 20000);
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
    n_preempted += driver.n_preempted;
  }
  EXPECT_GT(n_preempted, 100);
}

// Small pools, crops, drafts and arrivals at random: the state that each slice begins from is that of its text.
TEST(scheduler, recurrent_states_follow_their_sequences_through_preemption_crops_and_drafts) {
  int64_t n_preempted = 0;
  int64_t n_accepted = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    SchedulerOptions options = small_options();
    options.n_blocks = 16 + static_cast<int32_t>(seed % 3);
    options.use_prefix_index = false;
    constexpr int32_t kDrafts = 8;
    options.n_states = 2 * options.max_running + kDrafts;
    Driver driver(options);
    driver.draft_length = seed % 4;
    const StepBudget budget{
        .max_rows = 24, .max_prefill_rows = 1 + static_cast<int32_t>(seed % 16), .max_out_rows = 8 + kDrafts};
    for (SequenceId id = 0; id < 60; ++id) {
      std::ignore = driver.add(id, random_job(random, 20, 40));
      if (random() % 8 == 0) driver.scheduler.remove(id - static_cast<SequenceId>(random() % 4));
      driver.step(budget);
    }
    driver.run(budget);
    expect_nothing_is_held(driver.scheduler);
    n_preempted += driver.n_preempted;
    n_accepted += driver.n_accepted_drafts;
  }
  EXPECT_GT(n_preempted, 50);
  EXPECT_GT(n_accepted, 100);
}

TEST(scheduler, a_stream_of_short_requests_does_not_starve_a_long_one) {
  SchedulerOptions options = small_options();
  options.n_blocks = 16;  // the long one alone fills the pool
  Driver driver(options);
  std::mt19937 random(5);
  ASSERT_TRUE(driver.add(0, {.prompt = std::vector<TokenId>(50, 3), .n_new = 14}).has_value());
  SequenceId next = 1;
  int n_steps = 0;
  while (driver.scheduler.find(0) != nullptr && n_steps < 1000) {
    while (driver.scheduler.n_waiting() < 4) {
      ASSERT_TRUE(driver.add(next++, {.prompt = {static_cast<TokenId>(random() % 9)}, .n_new = 8}).has_value());
    }
    driver.step({.max_rows = 16, .max_prefill_rows = 16});
    ++n_steps;
  }
  EXPECT_LT(n_steps, 30);
  driver.run({});
  driver.expect_all_right();
}

TEST(scheduler, random_arrivals_and_withdrawals_leak_nothing_and_plans_replay) {
  for (const kv::PrefixHash hash : {kv::PrefixHash{kv::hash_prefix},
                                    kv::PrefixHash{[](uint64_t, std::span<const TokenId>) { return uint64_t{1}; }}}) {
    std::vector<std::vector<TokenId>> transcripts;
    for (int repetition = 0; repetition < 2; ++repetition) {
      std::mt19937 random(11);
      SchedulerOptions options = small_options();
      options.n_blocks = 20;
      options.hash = hash;
      Driver driver(options);
      std::vector<TokenId> transcript;
      for (SequenceId id = 0; id < 400; ++id) {
        if (random() % 3 != 0) std::ignore = driver.add(id, random_job(random, 30, 20));
        if (random() % 4 == 0) driver.scheduler.remove(id - static_cast<SequenceId>(random() % 10));
        driver.step({.max_rows = 12, .max_prefill_rows = 6});
        transcript.push_back(static_cast<TokenId>(driver.n_rows));
      }
      driver.run({.max_rows = 12, .max_prefill_rows = 6});
      expect_nothing_is_held(driver.scheduler);
      for (const auto& [id, answer] : driver.answers) transcript.insert(transcript.end(), answer.begin(), answer.end());
      transcripts.push_back(std::move(transcript));
    }
    EXPECT_EQ(transcripts[0], transcripts[1]);
  }
}

}  // namespace
}  // namespace candor::sched
