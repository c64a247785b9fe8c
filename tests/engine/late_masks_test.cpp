// Masks that take long: requests without them go on, requests with them get the same answer as with quick ones, and
// leaving does not wait for them. The masks wait for each other's company here, never for a clock.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <future>
#include <thread>
#include <utility>

#include "engine/engine_impl.h"
#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;
using testing::token_prompt;

constexpr TokenId kFirst = 260;
constexpr TokenId kEnd = 286;
constexpr auto kPatience = std::chrono::seconds(20);  // of a broken engine; then the test fails

// What masks wait for: tokens of another request, or a gate.
class Gate {
 public:
  // Masks are there at once; only those behind it wait.
  void let_pass(bool open) {
    const std::lock_guard lock(mutex_);
    is_open_ = open;
    changed_.notify_all();
  }
  // A mask waits until the others got so many tokens more.
  void wait_for_others(int64_t n) {
    const std::lock_guard lock(mutex_);
    n_others_ = n;
    is_open_ = n == 0;
    changed_.notify_all();
  }
  void on_other_token() {
    const std::lock_guard lock(mutex_);
    ++n_tokens_;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    if (is_open_) return;
    ++n_late_;
    ++n_inside_;
    changed_.notify_all();
    const int64_t until = n_others_ > 0 ? n_tokens_ + n_others_ : INT64_MAX;
    gave_up_ |= !changed_.wait_for(lock, kPatience, [&] { return is_open_ || n_tokens_ >= until; });
    --n_inside_;
  }
  void wait_until_a_mask_is_inside() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return n_inside_ > 0; }));
  }
  // Of the masks; a failure where one waited in vain.
  int64_t n_late() {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(gave_up_);
    return n_late_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  bool gave_up_ = false;
  int64_t n_others_ = 0;
  int64_t n_tokens_ = 0;
  int64_t n_late_ = 0;
  int32_t n_inside_ = 0;
};

// Another two thirds of the letters for every token.
class Letters final : public constrain::Constraint {
 public:
  Letters(Gate& gate, int32_t n_accepted) : gate_(gate), n_accepted_(n_accepted) {}

  Result<void> mask(constrain::TokenMask& mask) override {
    if (n_accepted_ > 0) gate_.pass();
    for (TokenId token = 0; token < mask.n_tokens(); ++token) {
      if (allows(token)) mask.allow(token);
      if (!allows(token)) mask.forbid(token);
    }
    return {};
  }
  Result<void> accept(TokenId token) override {
    if (!allows(token)) return fail(ErrorKind::kInternal, "not a letter of this place");
    ++n_accepted_;
    return {};
  }
  Result<std::unique_ptr<Constraint>> fork() const override { return std::make_unique<Letters>(gate_, n_accepted_); }
  bool may_end() override { return false; }
  bool must_end() const override { return false; }

 private:
  bool allows(TokenId token) const { return token >= kFirst && token < kEnd && (token + n_accepted_) % 3 != 0; }

  Gate& gate_;
  int32_t n_accepted_;
};

class LateMasks : public testing::TinyModelTest {
 protected:
  LateMasks() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  }
  Engine& engine() {
    if (engine_) return *engine_;
    auto opened = engine::open_with_constraints(options_, [this](const ConstraintSpec&) {
      return Result<std::unique_ptr<constrain::Constraint>>(std::make_unique<Letters>(gate_, 0));
    });
    EXPECT_TRUE(opened.has_value());
    engine_ = std::move(*opened);
    return *engine_;
  }
  static Request letters(int64_t n_tokens, uint64_t seed) {
    Request request = sampled(token_prompt(12, 320, seed), n_tokens, seed);
    request.sampling.ignore_eos = true;
    request.constraint = {GrammarKind::kRegex, "anything"};
    return request;
  }
  static Request endless() {
    Request request = testing::greedy(token_prompt(5, 320, 3), 1);
    request.sampling.max_tokens.reset();
    request.sampling.ignore_eos = true;
    request.on_context_full = OnContextFull::kCrop;
    return request;
  }
  // Every mask takes until another request got two tokens more.
  Completion complete_late(
      const Request& request, const std::function<void()>& on_other_token = [] {}) {
    gate_.wait_for_others(2);
    const auto other = engine().submit(endless(), [&](const TokenEvent& event) {
      gate_.on_other_token();
      if (!event.summary) on_other_token();
      if (event.summary) other_ended_.set_value();
    });
    EXPECT_TRUE(other.has_value());
    const int64_t n_before = gate_.n_late();
    Completion completion = complete(engine(), request);
    EXPECT_GT(gate_.n_late(), n_before);
    gate_.wait_for_others(0);
    EXPECT_TRUE(engine().cancel(*other).has_value());
    other_ended_.get_future().wait();
    other_ended_ = {};
    return completion;
  }
  void expect_late_is_the_same(const Request& request, const std::string& what) {
    const Completion quick = complete(engine(), request);
    const Completion late = complete_late(request);
    testing::expect_same(late, quick, what);
    ASSERT_EQ(late.more_choices.size(), quick.more_choices.size());
    for (size_t i = 0; i < late.more_choices.size(); ++i) {
      EXPECT_EQ(late.more_choices[i].tokens, quick.more_choices[i].tokens) << what << ", choice " << i;
      EXPECT_TRUE(late.more_choices[i].logprobs == quick.more_choices[i].logprobs) << what << ", choice " << i;
    }
    EXPECT_EQ(late.summary.usage.token_layers, quick.summary.usage.token_layers) << what << ": rows computed twice";
  }
  // The last event, which must come; the gate stays closed.
  TokenEvent end_while_a_mask_is_inside(const Request& request, bool cancels) {
    gate_.let_pass(false);
    std::promise<TokenEvent> end;
    const auto id = engine().submit(request, [&end](const TokenEvent& event) {
      if (event.summary) end.set_value(event);
    });
    EXPECT_TRUE(id.has_value());
    gate_.wait_until_a_mask_is_inside();
    EXPECT_TRUE(!cancels || engine().cancel(*id).has_value());
    auto last = end.get_future();
    EXPECT_EQ(last.wait_for(kPatience), std::future_status::ready);
    return last.get();
  }

  EngineOptions options_;
  Gate gate_;
  std::promise<void> other_ended_;
  std::unique_ptr<Engine> engine_;
};

TEST_F(LateMasks, give_the_answers_of_quick_ones_while_others_go_on) {
  for (uint64_t seed = 0; seed < 3; ++seed) expect_late_is_the_same(letters(12, seed), "seed " + std::to_string(seed));
}

TEST_F(LateMasks, of_several_choices_change_none_of_them) {
  Request request = letters(8, 4);
  request.n = 4;
  expect_late_is_the_same(request, "four choices");
}

TEST_F(LateMasks, of_a_beam_search_change_nothing) {
  Request request = letters(6, 5);
  request.sampling.temperature = 0.0;
  request.beams = BeamSearch{.width = 3};
  request.n = 2;
  expect_late_is_the_same(request, "three beams");
}

TEST_F(LateMasks, while_sequences_give_way_change_nothing) {
  options_.kv_blocks = 8;
  options_.prefix_cache = false;
  Request request = letters(20, 6);
  request.n = 3;
  const Completion quick = complete(engine(), request);
  Request urgent = testing::greedy(token_prompt(100, 320, 1), 1);
  urgent.scheduling.priority = 100;
  int n_tokens = 0;
  const Completion late = complete_late(request, [&] {
    if (++n_tokens % 8 != 0) return;
    EXPECT_TRUE(engine().submit(urgent, [](const TokenEvent&) {}).has_value());
  });
  testing::expect_same(late, quick, "few blocks");
  EXPECT_GT(late.summary.usage.preemptions, 0);
}

TEST_F(LateMasks, of_a_sequence_with_drafts_change_nothing) {
  options_.speculation = Speculation::kNgram;
  Request request = letters(40, 7);
  request.sampling.temperature = 0.0;
  const Completion quick = complete(engine(), request);
  EXPECT_GT(quick.summary.usage.drafted_tokens, 0);
  testing::expect_same(complete_late(request), quick, "n-grams");
}

TEST_F(LateMasks, of_a_draft_models_drafts_change_nothing) {
  options_.speculation = Speculation::kDraft;
  options_.draft_path = options_.model_path;
  const Request request = letters(30, 8);
  const Completion quick = complete(engine(), request);
  EXPECT_GT(quick.summary.usage.drafted_tokens, 0);
  testing::expect_same(complete_late(request), quick, "a twin");
}

TEST_F(LateMasks, do_not_keep_a_cancelled_request) {
  for (const int32_t n : {1, 3}) {
    Request request = letters(20, 9);
    request.n = n;
    EXPECT_EQ(end_while_a_mask_is_inside(request, true).finish, FinishReason::kCancelled);
    EXPECT_EQ(engine().stats().kv_blocks_used, 0);
    gate_.let_pass(true);
    EXPECT_EQ(complete(engine(), request).tokens.size(), 20u);
  }
}

TEST_F(LateMasks, do_not_keep_a_request_past_its_deadline) {
  Request request = letters(20, 9);
  request.scheduling.deadline_ms = 1000;  // the first mask is inside long before, on a slow machine too
  EXPECT_EQ(end_while_a_mask_is_inside(request, false).finish, FinishReason::kDeadline);
  gate_.let_pass(true);
}

TEST_F(LateMasks, do_not_keep_an_engine_from_ending_its_requests) {
  gate_.let_pass(false);
  std::promise<TokenEvent> end;
  const auto id = engine().submit(letters(20, 9), [&end](const TokenEvent& event) {
    if (event.summary) end.set_value(event);
  });
  ASSERT_TRUE(id.has_value());
  gate_.wait_until_a_mask_is_inside();
  std::thread closing([this] { engine_.reset(); });
  EXPECT_EQ(end.get_future().get().finish, FinishReason::kCancelled);
  gate_.let_pass(true);
  closing.join();
}

TEST_F(LateMasks, leave_an_engine_with_nothing_else_to_do_idle_and_wake_it) {
  gate_.let_pass(false);
  std::promise<void> end;
  const auto id = engine().submit(letters(20, 10), [&end](const TokenEvent& event) {
    if (event.summary) end.set_value();
  });
  ASSERT_TRUE(id.has_value());
  gate_.wait_until_a_mask_is_inside();
  auto ended = end.get_future();
  const std::clock_t before = std::clock();
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(400)), std::future_status::timeout);
  EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.2);
  gate_.let_pass(true);
  EXPECT_EQ(ended.wait_for(kPatience), std::future_status::ready);
}

// `s s` has as many readings as there are ways to put brackets: its masks grow with the square of the text.
TEST_F(LateMasks, of_an_ambiguous_grammar_leave_every_step_to_the_others) {
  const auto real = testing::open_or_fail(options_);
  Request request = sampled(token_prompt(12, 320, 1), 24, 1);
  request.constraint = {GrammarKind::kGbnf, "root ::= s\ns ::= s s | [^x]"};
  request.n = 15;
  const Completion alone = complete(*real, request);
  std::vector<Request> crowd;
  for (uint64_t i = 0; i < 4; ++i) {
    crowd.push_back(sampled(token_prompt(9, 320, i), 100, i));
    crowd.back().sampling.ignore_eos = true;
  }
  std::vector<Completion> expected;
  for (const Request& one : crowd) expected.push_back(complete(*real, one));
  const int64_t n_steps = real->stats().n_steps;
  std::promise<Completion> beside;
  std::thread thread([&] { beside.set_value(complete(*real, request)); });
  const auto found = testing::Crowd(*real).run(crowd);
  for (size_t i = 0; i < crowd.size(); ++i) testing::expect_same(found[i], expected[i], "stream " + std::to_string(i));
  thread.join();
  testing::expect_same(beside.get_future().get(), alone, "the ambiguous one");
  // A stream has a token in every step; what sat out has its own steps behind them.
  EXPECT_LE(real->stats().n_steps - n_steps, 100 + 8 + 15 * 25);
}

}  // namespace
}  // namespace candor
