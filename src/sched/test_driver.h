#pragma once
// For tests: a driver that steps a scheduler with a model without weights.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "sched/scheduler.h"
#include "sched/test_model.h"

namespace candor::sched {

struct Job {
  std::vector<TokenId> prompt;
  size_t n_new = 0;
  OnContextFull on_full = OnContextFull::kStop;
  bool shows_prompt = false;
  std::array<int32_t, 2> turns{};
};

// What the model says to this prompt, computed from nothing but the text.
inline std::vector<TokenId> answer_alone(const Job& job, int32_t n_ctx) {
  std::vector<TokenId> text = job.prompt;
  std::vector<TokenId> answer;
  while (answer.size() < job.n_new &&
         (job.on_full == OnContextFull::kCrop || text.size() < static_cast<size_t>(n_ctx))) {
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
      : scheduler(options), options_(options), model_(options.n_blocks, options.block_tokens, options.n_states) {}

  Result<void> add(SequenceId id, const Job& job, int32_t priority = 0, uint64_t share_key = 0) {
    SequenceSpec spec{.id = id, .prompt = job.prompt, .key = {}, .on_full = job.on_full};
    spec.priority = priority;
    spec.share_key = share_key;
    spec.shows_prompt = job.shows_prompt;
    spec.turns = job.turns;
    auto added = scheduler.add(spec);
    if (added) jobs_[id] = job;
    return added;
  }

  void step(const StepBudget& budget) {
    if (draft_length > 0) propose();
    const StepPlan& plan = scheduler.plan(budget);
    EXPECT_EQ(plan.is_empty(), scheduler.is_idle());
    EXPECT_LE(plan.batch().n_rows(), budget.max_rows);
    const int32_t n_out_rows = static_cast<int32_t>(plan.out_rows.size()) - plan.n_shown_rows;
    const int32_t max_out_rows = std::max(budget.max_out_rows, options_.max_running);
    EXPECT_LE(n_out_rows, max_out_rows + (options_.n_states > 0 ? 0 : budget.max_shown_rows));
    EXPECT_LE(plan.n_shown_rows, budget.max_shown_rows);
    EXPECT_LE(n_out_rows + plan.n_shown_rows, max_out_rows + budget.max_shown_rows);
    n_rows += plan.batch().n_rows();
    n_preempted += plan.n_preempted;
    const auto states = model_.run(plan);
    std::vector<std::vector<TokenId>> accepted(plan.slices.size());
    std::vector<Outcome> outcomes;
    for (size_t s = 0; s < plan.slices.size(); ++s) {
      const PlannedSlice& slice = plan.slices[s];
      look_at_prompt(slice, states);
      if (slice.n_out == 0) continue;
      const auto own = std::span(states).subspan(static_cast<size_t>(slice.out_row), static_cast<size_t>(slice.n_out));
      outcomes.push_back(choose(*slice.sequence, own, accepted[s]));
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
    for (const auto& [id, job] : jobs_) {
      const auto it = shown_.find(id);
      EXPECT_EQ(it == shown_.end() ? 0 : it->second, job.shows_prompt ? job.prompt.size() - 1 : 0) << "sequence " << id;
    }
  }

  void forget() { jobs_.clear(), answers.clear(), shown_.clear(); }

  Scheduler scheduler;
  std::map<SequenceId, std::vector<TokenId>> answers{};
  int64_t n_rows = 0;
  int64_t n_preempted = 0;
  int64_t n_accepted_drafts = 0;
  size_t draft_length = 0;  // of the drafts, which are accepted up to a point that the sequence's length decides

 private:
  // Each row of a shown prompt comes once, in order, and is the right one.
  void look_at_prompt(const PlannedSlice& slice, std::span<const uint64_t> states) {
    for (int32_t i = 0; i < slice.n_shown; ++i) {
      const std::vector<TokenId>& prompt = jobs_.at(slice.sequence->id).prompt;
      const size_t at = shown_[slice.sequence->id]++;
      EXPECT_EQ(slice.sequence->shown_begin + i, static_cast<int32_t>(at));
      uint64_t state = 0;
      for (size_t t = 0; t <= at; ++t) state = FakeModel::push(state, prompt[t], static_cast<int32_t>(t));
      EXPECT_EQ(states[static_cast<size_t>(slice.shown_row + i)], state);
    }
  }

  // What the model says after each row, as far as drafts are accepted.
  Outcome choose(const Sequence& sequence, std::span<const uint64_t> states, std::vector<TokenId>& accepted) {
    auto& answer = answers[sequence.id];
    bool is_finished = false;
    for (size_t i = 0; i < states.size() && !is_finished; ++i) {
      accepted.push_back(FakeModel::next_token(states[i]));
      answer.push_back(accepted.back());
      const size_t n_tokens = sequence.tokens.size() + accepted.size();
      const bool fills_up = sequence.on_full == OnContextFull::kStop && n_tokens >= static_cast<size_t>(options_.n_ctx);
      is_finished = fills_up || answer.size() == jobs_.at(sequence.id).n_new;
      if (i + 1 < states.size() && sequence.draft[i] != accepted.back()) break;
    }
    n_accepted_drafts += static_cast<int64_t>(accepted.size()) - 1;
    return {sequence.id, accepted, is_finished};
  }

  void propose() {
    for (int32_t i = 0; i < scheduler.n_running(); ++i) {
      const Sequence& sequence = scheduler.running(i);
      Job rest{.prompt = sequence.tokens, .n_new = draft_length, .on_full = sequence.on_full};
      std::vector<TokenId> drafts = answer_alone(rest, options_.n_ctx);
      const size_t n_accepted = sequence.tokens.size() % (draft_length + 1);
      for (size_t d = n_accepted; d < drafts.size(); ++d) drafts[d] = 7;
      scheduler.set_draft(sequence.id, drafts);
    }
  }

  SchedulerOptions options_;
  FakeModel model_;
  std::map<SequenceId, Job> jobs_{};
  std::map<SequenceId, size_t> shown_{};  // rows of the prompt so far
};

inline SchedulerOptions small_options() {
  return {.n_ctx = 64, .n_blocks = 64, .block_tokens = 4, .max_running = 8};
}

inline Job random_job(std::mt19937& random, size_t max_prompt, size_t max_new) {
  Job job;
  const size_t n = 1 + random() % max_prompt;
  for (size_t i = 0; i < n; ++i) job.prompt.push_back(random() % 6 == 0 ? 1 : 0);  // beginnings are often equal
  job.n_new = 1 + random() % max_new;
  job.on_full = random() % 4 == 0 ? OnContextFull::kCrop : OnContextFull::kStop;
  return job;
}

inline void expect_nothing_is_held(const Scheduler& scheduler) {
  EXPECT_TRUE(scheduler.is_idle());
  EXPECT_EQ(scheduler.blocks().pool().n_used(), 0);
  EXPECT_EQ(scheduler.blocks().states().n_used(), 0);
  EXPECT_EQ(scheduler.blocks().pool().n_available(), scheduler.blocks().pool().n_blocks());
}

}  // namespace candor::sched
