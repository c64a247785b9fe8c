// States at the ends of blocks: who goes on from where, and what goes when room is wanted. The model notices every
// state that is not that of its text.

#include <tuple>

#include "sched/test_driver.h"

namespace candor::sched::checkpoint_tests {
namespace {

constexpr StepBudget kWide{.max_rows = 64, .max_prefill_rows = 64, .max_out_rows = 16};

SchedulerOptions with_states(int32_t n_kept) {
  SchedulerOptions options = small_options();
  options.n_ctx = 128;
  options.n_blocks = 256;
  options.n_states = 2 * options.max_running + 8 + n_kept;
  return options;
}

// A text that begins with n tokens of its own kind.
std::vector<TokenId> text(size_t n, TokenId kind) {
  std::vector<TokenId> tokens(n, kind);
  for (size_t i = 0; i < n; ++i) tokens[i] = kind * 100 + static_cast<TokenId>(i);
  return tokens;
}

std::vector<TokenId> operator+(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Runs one request alone; how many tokens of its prompt it found.
int32_t n_found(Driver& driver, SequenceId id, const std::vector<TokenId>& prompt, size_t n_new = 2) {
  EXPECT_TRUE(driver.add(id, {.prompt = prompt, .n_new = n_new}).has_value());
  driver.step(kWide);
  const Sequence* sequence = driver.scheduler.find(id);
  const int32_t n = sequence == nullptr ? -1 : sequence->n_cached;
  driver.run(kWide);
  return n;
}

TEST(checkpoints, the_same_prompt_goes_on_from_its_last_border) {
  Driver driver(with_states(4));
  EXPECT_EQ(n_found(driver, 1, text(40, 1)), 0);
  EXPECT_EQ(n_found(driver, 2, text(40, 1)), 36);  // one token at least is computed
  EXPECT_EQ(n_found(driver, 3, text(39, 1)), 36);
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

TEST(checkpoints, a_prompt_whose_end_is_written_otherwise_goes_on_from_the_border_before) {
  Driver driver(with_states(4));
  n_found(driver, 1, text(42, 1));
  EXPECT_EQ(n_found(driver, 2, text(39, 1) + text(9, 2)), 36);
  driver.expect_all_right();
}

TEST(checkpoints, the_next_turn_goes_on_behind_the_answer) {
  Driver driver(with_states(4));
  std::vector<TokenId> so_far = text(30, 1);
  for (SequenceId turn = 1; turn <= 4; ++turn) {
    const size_t n_before = so_far.size();
    n_found(driver, turn, so_far, 11);
    so_far = so_far + driver.answers.at(turn);
    const auto last = static_cast<int32_t>((so_far.size() - 1) / 4 * 4);  // its last token was never computed
    so_far = so_far + text(7, static_cast<TokenId>(1 + turn));
    EXPECT_EQ(n_found(driver, 100 + turn, so_far), last) << n_before;
  }
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

TEST(checkpoints, a_shared_beginning_is_found_where_texts_parted_before) {
  Driver driver(with_states(8));
  const auto system = text(22, 1);
  EXPECT_EQ(n_found(driver, 1, system + text(30, 2)), 0);
  EXPECT_EQ(n_found(driver, 2, system + text(30, 3)), 16);  // of those spread over the first one
  EXPECT_EQ(n_found(driver, 3, system + text(30, 4)), 20);
  driver.expect_all_right();
}

TEST(checkpoints, a_system_text_is_found_by_the_second_where_it_is_known_to_end) {
  Driver driver(with_states(8));
  const auto system = text(22, 1);
  ASSERT_TRUE(driver.add(1, {.prompt = system + text(30, 2), .n_new = 2, .turns = {22, 40}}).has_value());
  driver.run(kWide);
  EXPECT_EQ(n_found(driver, 2, system + text(30, 3)), 20);
  EXPECT_EQ(n_found(driver, 3, system + text(18, 2) + text(20, 4)), 40) << "and what follows it";
  driver.expect_all_right();
}

TEST(checkpoints, without_any_slot_to_spare_prompts_are_read_whole_and_right) {
  SchedulerOptions options = with_states(0);
  options.max_running = 1;
  options.n_states = 2;
  Driver driver(options);
  EXPECT_EQ(n_found(driver, 1, text(40, 1)), 0);
  EXPECT_EQ(n_found(driver, 2, text(40, 1), 9), 0);
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

TEST(checkpoints, two_that_read_the_same_at_once_leave_one) {
  Driver driver(with_states(8));
  for (SequenceId id = 1; id <= 3; ++id) {
    ASSERT_TRUE(driver.add(id, {.prompt = text(41, 1), .n_new = 4}).has_value());
  }
  driver.step({.max_rows = 200, .max_prefill_rows = 200});
  // Spread at 16 and 32; the last border is 40, and 36 the one before, where the end is unsure.
  EXPECT_EQ(driver.scheduler.blocks().states().n_checkpoints(), 4);
  driver.run(kWide);
  driver.expect_all_right();
  EXPECT_EQ(n_found(driver, 9, text(41, 1)), 40);
  expect_nothing_is_held(driver.scheduler);
}

TEST(checkpoints, scopes_are_kept_apart) {
  Driver driver(with_states(8));
  SequenceSpec spec{.id = 1, .prompt = text(40, 1)};
  spec.key.scope = "someone else";
  ASSERT_TRUE(driver.scheduler.add(spec).has_value());
  driver.scheduler.plan(kWide);
  const auto slices = driver.scheduler.plan(kWide).slices;
  ASSERT_EQ(slices.size(), 1u);
  const TokenId token = 5;
  const Outcome outcome{1, std::span(&token, 1), true};
  driver.scheduler.commit(std::span(&outcome, 1));
  EXPECT_GT(driver.scheduler.blocks().states().n_checkpoints(), 0);
  EXPECT_EQ(n_found(driver, 2, text(40, 1)), 0);
}

TEST(checkpoints, a_preempted_sequence_goes_on_from_its_newest) {
  int64_t n_rows[2];
  for (const bool keeps : {false, true}) {
    SchedulerOptions options = with_states(8);
    options.max_running = 1;
    options.use_prefix_index = keeps;
    Driver driver(options);
    ASSERT_TRUE(driver.add(1, {.prompt = text(60, 1), .n_new = 40}).has_value());
    for (int i = 0; i < 30; ++i) driver.step(kWide);
    ASSERT_TRUE(driver.add(2, {.prompt = text(10, 2), .n_new = 3}, 1).has_value());
    driver.run(kWide);
    EXPECT_EQ(driver.n_preempted, 1);
    driver.expect_all_right();
    expect_nothing_is_held(driver.scheduler);
    n_rows[keeps ? 1 : 0] = driver.n_rows;
  }
  EXPECT_LE(n_rows[1], n_rows[0] - 84);  // of 89 or so read again
}

TEST(checkpoints, what_is_evicted_while_a_request_waits_is_read) {
  SchedulerOptions options = with_states(4);
  options.n_ctx = 64;
  options.n_blocks = 16;
  options.max_running = 1;
  Driver driver(options);
  n_found(driver, 1, text(40, 1));
  ASSERT_TRUE(driver.add(2, {.prompt = text(60, 2), .n_new = 4}).has_value());
  driver.step(kWide);
  ASSERT_TRUE(driver.add(3, {.prompt = text(40, 1), .n_new = 4}).has_value());
  driver.run(kWide);
  EXPECT_EQ(driver.n_rows, 40 + 1 + 60 + 3 + 40 + 3);
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

// Somebody's chat goes on while hundreds of prompts come by that are never seen again.
TEST(checkpoints, thousands_of_other_prompts_do_not_push_a_chat_out_that_is_going_on) {
  SchedulerOptions options = with_states(8);
  options.n_blocks = 512;
  Driver driver(options);
  const auto system = text(30, 1);
  SequenceId id = 0;
  n_found(driver, id++, system + text(9, 2));
  n_found(driver, id++, system + text(9, 3));
  for (TokenId round = 0; round < 200; ++round) {
    for (TokenId i = 0; i < 10; ++i) n_found(driver, id++, text(45, 10 + 10 * round + i), 1);
    EXPECT_EQ(n_found(driver, id++, system + text(9, 10'000 + round)), 28);
    EXPECT_LE(driver.scheduler.blocks().states().n_checkpoints(), options.n_states);
  }
  driver.expect_all_right();
  expect_nothing_is_held(driver.scheduler);
}

// Small pools, few slots, crops, drafts, priorities and withdrawals at random: the state that each slice begins from is
// that of its text, and in the end nothing is held.
TEST(checkpoints, follow_their_texts_through_preemption_crops_drafts_and_withdrawals) {
  int64_t n_preempted = 0, n_accepted = 0, n_cached = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    SchedulerOptions options = small_options();
    options.n_blocks = 16 + static_cast<int32_t>(seed % 30);
    options.n_states =
        2 * options.max_running + 8 + static_cast<int32_t>(seed % 7) - static_cast<int32_t>(seed % 2) * 8;
    options.n_states = std::max(options.n_states, 2 * options.max_running + 4);
    Driver driver(options);
    driver.draft_length = seed % 4;
    const StepBudget budget{
        .max_rows = 24, .max_prefill_rows = 1 + static_cast<int32_t>(seed % 24), .max_out_rows = 8 + 4};
    for (SequenceId id = 0; id < 80; ++id) {
      std::ignore = driver.add(id, random_job(random, 40, 20), static_cast<int32_t>(random() % 3));
      if (random() % 8 == 0) driver.scheduler.remove(id - static_cast<SequenceId>(random() % 4));
      driver.step(budget);
      const Sequence* sequence = driver.scheduler.find(id);
      n_cached += sequence == nullptr ? 0 : sequence->n_cached;
    }
    driver.run(budget);
    expect_nothing_is_held(driver.scheduler);
    EXPECT_LE(driver.scheduler.blocks().states().n_checkpoints(), driver.scheduler.blocks().n_entries());
    n_preempted += driver.n_preempted;
    n_accepted += driver.n_accepted_drafts;
  }
  EXPECT_GT(n_preempted, 50);
  EXPECT_GT(n_accepted, 100);
  EXPECT_GT(n_cached, 500);
}

}  // namespace
}  // namespace candor::sched::checkpoint_tests
