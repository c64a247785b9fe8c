// Whose turn it is, and how much of a prompt a step reads: priorities, shares, costs, windows.

#include <algorithm>

#include "sched/test_driver.h"

namespace candor::sched {
namespace {

constexpr StepBudget kWide{.max_rows = 64, .max_prefill_rows = 64};

// One row costs 1 000 000, every further one 100 000, a pair 100.
CostModel linear_costs() {
  return {.points = {{1, 1'000'000}, {11, 2'000'000}}, .attend_ps = 100'000};
}

Job job(int32_t n_prompt, size_t n_new, TokenId token = 1) {
  return {.prompt = std::vector<TokenId>(static_cast<size_t>(n_prompt), token), .n_new = n_new};
}

TEST(cost_model, runs_straight_between_points_and_on_past_the_last) {
  const CostModel costs = linear_costs();
  EXPECT_EQ(costs.step_ns({.n_rows = 0}), 0);
  EXPECT_EQ(costs.step_ns({.n_rows = 1}), 1'000'000);
  EXPECT_EQ(costs.step_ns({.n_rows = 6}), 1'500'000);
  EXPECT_EQ(costs.step_ns({.n_rows = 31}), 4'000'000);
  EXPECT_EQ(costs.step_ns({.n_rows = 1, .n_pairs = 50}), 1'005'000);
  EXPECT_EQ(CostModel{}.step_ns({.n_rows = 100, .n_pairs = 100}), 0);
  EXPECT_EQ((CostModel{.points = {{4, 7}}}).step_ns({.n_rows = 100}), 7);
}

TEST(cost_model, a_sequence_is_looked_back_at_once_and_each_of_its_rows_pays_for_what_it_sees) {
  CostModel costs = linear_costs();
  costs.look_back_ps = 7'000'000;
  StepWork work;
  work.begin_sequence(10);
  work.add_rows(10, 3);
  EXPECT_EQ(work.n_pairs, 11 + 12 + 13);
  EXPECT_EQ(costs.step_ns(work), 1'200'000 + 36 * 100 + 10 * 7'000);
  work.add_rows(13, 1);
  EXPECT_EQ(costs.step_ns(work), 1'300'000 + 50 * 100 + 10 * 7'000);
}

TEST(cost_model, logits_are_paid_for_by_row) {
  CostModel costs = linear_costs();
  costs.out_row_ns = 10'000;
  EXPECT_EQ(costs.step_ns({.n_rows = 6}), 1'500'000);
  EXPECT_EQ(costs.step_ns({.n_rows = 6, .n_out_rows = 1}), 1'500'000);
  EXPECT_EQ(costs.step_ns({.n_rows = 6, .n_out_rows = 6}), 1'550'000);
}

TEST(fair_share, a_key_that_comes_back_has_neither_credit_nor_debt) {
  FairShare shares;
  shares.open(1);
  shares.charge(1, 500);
  shares.open(2);
  EXPECT_EQ(shares.served(2), 500);
  shares.charge(2, 100);
  shares.close(1);
  shares.open(1);
  EXPECT_EQ(shares.served(1), 600);
  shares.close(1);
  shares.close(2);
  EXPECT_EQ(shares.n_keys(), 0);
}

TEST(turns, a_higher_priority_is_admitted_first) {
  SchedulerOptions options = small_options();
  options.max_running = 1;
  Driver driver(options);
  ASSERT_TRUE(driver.add(1, job(2, 3), 0).has_value());
  ASSERT_TRUE(driver.add(2, job(2, 3), 5).has_value());
  ASSERT_TRUE(driver.add(3, job(2, 3), -5).has_value());
  std::vector<SequenceId> order;
  while (!driver.scheduler.is_idle()) {
    driver.step(kWide);
    for (const auto& [id, answer] : driver.answers) {
      if (std::ranges::find(order, id) == order.end()) order.push_back(id);
    }
  }
  EXPECT_EQ(order, (std::vector<SequenceId>{2, 1, 3}));
  driver.expect_all_right();
}

TEST(turns, a_higher_priority_takes_the_place_and_the_blocks_of_a_lower_one) {
  SchedulerOptions options = small_options();
  options.n_blocks = 16;
  options.max_running = 2;
  Driver driver(options);
  ASSERT_TRUE(driver.add(1, job(20, 20), 0).has_value());
  ASSERT_TRUE(driver.add(2, job(20, 20, 2), 0).has_value());
  driver.step(kWide);
  ASSERT_TRUE(driver.add(3, job(50, 5, 3), 1).has_value());
  driver.step(kWide);
  EXPECT_TRUE(driver.scheduler.find(3)->is_running);
  EXPECT_FALSE(driver.scheduler.find(2)->is_running);
  driver.run(kWide);
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

TEST(turns, a_stream_of_high_priorities_does_not_starve_a_low_one) {
  SchedulerOptions options = small_options();
  options.max_running = 2;
  Driver driver(options);
  ASSERT_TRUE(driver.add(0, job(8, 20), 0).has_value());
  SequenceId next = 1;
  int n_steps = 0;
  for (; driver.scheduler.find(0) != nullptr && n_steps < 5000; ++n_steps) {
    while (driver.scheduler.n_waiting() < 4) ASSERT_TRUE(driver.add(next++, job(4, 6, 2), 3).has_value());
    driver.step(kWide);
  }
  EXPECT_LT(n_steps, 5 * kStepsPerRank);
  EXPECT_GT(n_steps, 2 * kStepsPerRank);
  driver.run(kWide);
  driver.expect_all_right();
}

TEST(turns, a_key_with_many_requests_does_not_hold_up_one_with_few) {
  SchedulerOptions options = small_options();
  options.max_running = 2;
  Driver driver(options);
  for (SequenceId id = 0; id < 40; ++id) ASSERT_TRUE(driver.add(id, job(8, 10), 0, 1).has_value());
  for (int i = 0; i < 12; ++i) driver.step(kWide);
  ASSERT_TRUE(driver.add(100, job(8, 10, 2), 0, 2).has_value());
  ASSERT_TRUE(driver.add(101, job(8, 10, 3), 0, 2).has_value());
  int n_steps = 0;
  while (driver.scheduler.find(100) != nullptr || driver.scheduler.find(101) != nullptr) {
    driver.step(kWide);
    ASSERT_LT(++n_steps, 50);  // in order of arrival it would be more than 200
  }
  driver.run(kWide);
  driver.expect_all_right();
  EXPECT_EQ(driver.scheduler.shares().n_keys(), 0);
}

TEST(budget, beside_decoding_a_prompt_is_read_only_as_far_as_the_step_has_time) {
  for (const int64_t decode_step_ns : {int64_t{0}, int64_t{3'000'000}}) {
    SchedulerOptions options = small_options();
    options.costs = linear_costs();
    Driver driver(options);
    const StepBudget budget{.max_rows = 64, .max_prefill_rows = 64, .decode_step_ns = decode_step_ns};
    ASSERT_TRUE(driver.add(1, job(4, 40)).has_value());
    driver.step(budget);
    const int64_t alone_ns = options.costs.step_ns({.n_rows = 1, .n_pairs = 5});
    ASSERT_TRUE(driver.add(2, job(60, 2, 2)).has_value());
    const int64_t limit_ns = decode_step_ns > 0 ? decode_step_ns : 2 * alone_ns;
    int n_chunks = 0;
    while (driver.answers.count(2) == 0) {
      const StepPlan& plan = driver.scheduler.plan(budget);
      EXPECT_LE(plan.expected_ns, limit_ns);
      EXPECT_EQ(plan.slices.size(), 2u);
      const bool is_last_chunk = plan.out_rows.size() == 2;
      EXPECT_TRUE(is_last_chunk || plan.expected_ns > limit_ns * 7 / 10) << plan.expected_ns;
      ++n_chunks;
      driver.step(budget);
    }
    EXPECT_GE(n_chunks, 3);
    EXPECT_LE(n_chunks, 10);
    EXPECT_EQ(driver.answers.at(1).size(), static_cast<size_t>(n_chunks) + 1);
    driver.run(budget);
    driver.expect_all_right();
  }
}

TEST(budget, too_small_for_anything_still_reads_a_little) {
  SchedulerOptions options = small_options();
  options.costs = linear_costs();
  Driver driver(options);
  const StepBudget budget{.max_rows = 64, .max_prefill_rows = 64, .decode_step_ns = 1};
  ASSERT_TRUE(driver.add(1, job(4, 60)).has_value());
  driver.step(budget);
  ASSERT_TRUE(driver.add(2, job(60, 2, 2)).has_value());
  int n_steps = 0;
  for (; driver.answers.count(2) == 0; ++n_steps) driver.step(budget);
  EXPECT_LE(n_steps, 15);
  driver.run(budget);
  driver.expect_all_right();
}

TEST(budget, short_prompts_are_read_beside_a_long_one_and_the_long_one_goes_on) {
  SchedulerOptions options = small_options();
  options.n_ctx = 400;
  options.n_blocks = 400;
  options.costs = linear_costs();
  Driver driver(options);
  const StepBudget budget{.max_rows = 64, .max_prefill_rows = 64};
  ASSERT_TRUE(driver.add(1, job(2, 300)).has_value());
  driver.step(budget);
  ASSERT_TRUE(driver.add(2, job(390, 2, 2)).has_value());
  constexpr SequenceId kFirst = 10;
  constexpr int kSteps = 4;  // between two short ones
  SequenceId next = kFirst;
  int n_steps = 0;
  for (; driver.answers.count(2) == 0; ++n_steps) {
    if (n_steps % kSteps == 0) {
      ASSERT_TRUE(driver.add(next, job(6, 1, static_cast<TokenId>(next))).has_value());
      ++next;
    }
    driver.step(budget);
    for (SequenceId id = kFirst; id < next; ++id) {  // nobody waits for the long one
      const int n_waited = n_steps + 1 - static_cast<int>(id - kFirst) * kSteps;
      if (n_waited < kSteps) break;
      EXPECT_EQ(driver.answers.count(id), 1u) << id << " after " << n_waited << " steps";
    }
  }
  EXPECT_LT(n_steps, 110);
  EXPECT_EQ(static_cast<SequenceId>(driver.answers.size()), 2 + next - kFirst);
  driver.run(budget);
  driver.expect_all_right();
}

TEST(windows, blocks_that_no_layer_looks_at_any_more_are_free_at_once) {
  SchedulerOptions options = small_options();
  options.n_ctx = 200;
  options.n_blocks = 64;
  options.window_tokens = 10;
  for (const bool use_prefix_index : {true, false}) {
    options.use_prefix_index = use_prefix_index;
    Driver driver(options);
    ASSERT_TRUE(driver.add(1, job(3, 150)).has_value());
    int32_t most = 0;
    while (!driver.scheduler.is_idle()) {
      driver.step(kWide);
      most = std::max(most, driver.scheduler.blocks().pool().n_used());
    }
    EXPECT_LE(most, 4);  // 10 positions touch at most four blocks of 4
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
  }
}

TEST(windows, with_forks_drafts_preemption_and_the_prefix_index_every_text_stays_right) {
  int64_t n_preempted = 0;
  for (uint32_t seed = 0; seed < 12; ++seed) {
    std::mt19937 random(seed);
    SchedulerOptions options = small_options();
    options.n_blocks = 17;
    options.window_tokens = 6 + static_cast<int32_t>(seed % 20);
    Driver driver(options);
    driver.draft_length = seed % 3;
    for (SequenceId id = 0; id < 30; ++id) ASSERT_TRUE(driver.add(id, random_job(random, 40, 40)).has_value());
    driver.run({.max_rows = 24, .max_prefill_rows = 16, .max_out_rows = 20});
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
    n_preempted += driver.n_preempted;
  }
  EXPECT_GT(n_preempted, 0);
}

// Fills and empties the pool 2 000 times with whatever comes.
TEST(turns, of_random_priorities_keys_and_withdrawals_leave_nothing_behind) {
  SchedulerOptions options = small_options();
  options.n_blocks = 18;
  options.costs = linear_costs();
  Driver driver(options);
  std::mt19937 random(2);
  SequenceId id = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto n = 1 + random() % 6;
    for (size_t i = 0; i < n; ++i) {
      const auto priority = static_cast<int32_t>(random() % 3);
      ASSERT_TRUE(driver.add(id++, random_job(random, 24, 12), priority, random() % 3).has_value());
    }
    while (!driver.scheduler.is_idle()) {
      driver.step({.max_rows = 24, .max_prefill_rows = 16});
      if (random() % 5 == 0) driver.scheduler.remove(id - 1 - static_cast<SequenceId>(random() % n));
    }
    expect_nothing_is_held(driver.scheduler);
    ASSERT_EQ(driver.scheduler.shares().n_keys(), 0);
    driver.forget();
  }
}

}  // namespace
}  // namespace candor::sched
