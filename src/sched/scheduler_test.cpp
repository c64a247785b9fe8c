#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

#include "base/hash.h"

namespace candor::sched {
namespace {

// A model whose next token is a hash of the whole text before it, read from a K/V store of its own: a wrong block, a
// stale position or a missing copy shows as a wrong token.
class FakeModel {
 public:
  FakeModel(int32_t n_blocks, int32_t block_tokens)
      : block_tokens_(block_tokens), store_(static_cast<size_t>(n_blocks * block_tokens)) {}

  static TokenId next_token(uint64_t state) { return static_cast<TokenId>(state % 1000); }
  static uint64_t push(uint64_t state, TokenId token, int32_t position) {
    return hash_mix(hash_mix(state, static_cast<uint64_t>(token)), static_cast<uint64_t>(position));
  }

  // The state after each row that is wanted.
  std::vector<uint64_t> run(const StepPlan& plan) {
    for (const kv::BlockCopy& copy : plan.copies) {
      for (int32_t i = 0; i < copy.n_tokens; ++i) cell(copy.dst, i) = cell(copy.src, i);
    }
    const backend::StepBatch batch = plan.batch();
    std::vector<uint64_t> states(static_cast<size_t>(batch.n_rows()));
    int32_t expected_row = 0;
    for (size_t s = 0; s < batch.seqs.size(); ++s) {
      const backend::SeqSlice& slice = batch.seqs[s];
      EXPECT_EQ(slice.first_row, expected_row);
      expected_row += slice.n_rows;
      run_slice(batch, s, states);
    }
    EXPECT_EQ(expected_row, batch.n_rows());
    std::vector<uint64_t> wanted;
    for (const int32_t row : batch.out_rows) wanted.push_back(states[static_cast<size_t>(row)]);
    return wanted;
  }

 private:
  uint64_t& cell(BlockId block, int32_t i) { return store_[static_cast<size_t>(block * block_tokens_ + i)]; }

  void run_slice(const backend::StepBatch& batch, size_t s, std::vector<uint64_t>& states) {
    const backend::SeqSlice& slice = batch.seqs[s];
    const auto blocks = batch.blocks_of(s);
    for (int32_t i = 0; i < slice.n_rows; ++i) {
      const size_t row = static_cast<size_t>(slice.first_row + i);
      const int32_t position = slice.n_past + i;
      EXPECT_EQ(batch.positions[row], position);
      const auto at = [&](int32_t p) -> uint64_t& {
        const BlockId block = blocks[static_cast<size_t>(p / block_tokens_)];
        EXPECT_GE(block, 0);
        return cell(std::max(block, 0), p % block_tokens_);
      };
      const uint64_t past = position == 0 ? 0 : at(position - 1);
      states[row] = at(position) = push(past, batch.tokens[row], position);
    }
  }

  int32_t block_tokens_;
  std::vector<uint64_t> store_;
};

struct Job {
  std::vector<TokenId> prompt;
  size_t n_new = 0;
  OnFull on_full = OnFull::kStop;
};

// What the model says to this prompt, computed from nothing but the text.
std::vector<TokenId> answer_alone(const Job& job, int32_t n_ctx) {
  std::vector<TokenId> text = job.prompt;
  std::vector<TokenId> answer;
  while (answer.size() < job.n_new && (job.on_full == OnFull::kCrop || text.size() < static_cast<size_t>(n_ctx))) {
    uint64_t state = 0;
    for (size_t i = 0; i < text.size(); ++i) state = FakeModel::push(state, text[i], static_cast<int32_t>(i));
    answer.push_back(FakeModel::next_token(state));
    text.push_back(answer.back());
    if (text.size() > static_cast<size_t>(n_ctx)) text.erase(text.begin());
  }
  return answer;
}

class Driver {
 public:
  explicit Driver(const SchedulerOptions& options)
      : options_(options), scheduler(options), model_(options.n_blocks, options.block_tokens) {}

  Expected<void> add(SequenceId id, const Job& job) {
    auto added = scheduler.add({.id = id, .prompt = job.prompt, .key = {}, .on_full = job.on_full});
    if (added) jobs_[id] = job;
    return added;
  }

  void step(const StepBudget& budget) {
    const StepPlan& plan = scheduler.plan(budget);
    EXPECT_EQ(plan.is_empty(), scheduler.is_idle());
    EXPECT_LE(plan.batch().n_rows(), budget.max_rows);
    n_rows += plan.batch().n_rows();
    n_preempted += plan.n_preempted;
    const auto states = model_.run(plan);
    std::vector<Outcome> outcomes;
    for (const PlannedSlice& slice : plan.slices) {
      if (slice.out_row < 0) continue;
      outcomes.push_back(choose(*slice.sequence, states[static_cast<size_t>(slice.out_row)]));
    }
    scheduler.commit(outcomes);
  }

  // At most max_steps steps; the number taken.
  int run(const StepBudget& budget, int max_steps = 100000) {
    int n_steps = 0;
    for (; n_steps < max_steps && !scheduler.is_idle(); ++n_steps) step(budget);
    return n_steps;
  }

  void expect_all_right() const {
    for (const auto& [id, job] : jobs_)
      EXPECT_EQ(answers.at(id), answer_alone(job, options_.n_ctx)) << "sequence " << id;
  }

 private:
  Outcome choose(const Sequence& sequence, uint64_t state) {
    Outcome outcome{sequence.id, FakeModel::next_token(state), false};
    auto& answer = answers[sequence.id];
    answer.push_back(outcome.token);
    const bool fills_up = sequence.on_full == OnFull::kStop && sequence.n_tokens() + 1 >= options_.n_ctx;
    outcome.is_finished = fills_up || answer.size() == jobs_.at(sequence.id).n_new;
    return outcome;
  }

  SchedulerOptions options_;

 public:
  Scheduler scheduler;
  std::map<SequenceId, std::vector<TokenId>> answers;
  int64_t n_rows = 0;
  int64_t n_preempted = 0;

 private:
  FakeModel model_;
  std::map<SequenceId, Job> jobs_;
};

SchedulerOptions small_options() {
  SchedulerOptions options;
  options.n_ctx = 64;
  options.n_blocks = 64;
  options.block_tokens = 4;
  options.max_running = 8;
  return options;
}

Job random_job(std::mt19937& random, size_t max_prompt, size_t max_new) {
  Job job;
  const size_t n = 1 + random() % max_prompt;
  for (size_t i = 0; i < n; ++i) job.prompt.push_back(random() % 6 == 0 ? 1 : 0);  // beginnings are often equal
  job.n_new = 1 + random() % max_new;
  job.on_full = random() % 4 == 0 ? OnFull::kCrop : OnFull::kStop;
  return job;
}

void expect_nothing_is_held(const Scheduler& scheduler) {
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.blocks().pool().n_used(), 0);
  EXPECT_EQ(scheduler.blocks().pool().n_available(), scheduler.blocks().pool().n_blocks());
}

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
  ASSERT_TRUE(driver.add(1, {.prompt = {1, 2, 3, 4, 5, 6, 7}, .n_new = 12, .on_full = OnFull::kCrop}).has_value());
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
