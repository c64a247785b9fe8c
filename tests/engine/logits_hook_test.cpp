// A caller's hook on logits: what it sees, what it changes, and what it cannot break.

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <vector>

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::Crowd;
using testing::expect_same;
using testing::greedy;
using testing::sampled;
using testing::token_prompt;

constexpr float kNever = -std::numeric_limits<float>::infinity();

class LogitsHooks : public testing::TinyModelTest {
 protected:
  LogitsHooks() : options_(testing::options_for(tiny_path(tiny_options()))) {
    options_.n_ctx = 128;
    options_.costs = StepCosts{.points = {{1, 1.0}, {64, 4.0}}, .attend_ns = 0};
    engine_ = testing::open_or_fail(options_);
  }
  EngineOptions options_;
  std::unique_ptr<Engine> engine_;
};

bool leave(const LogitsRow& /*row*/) {
  return true;
}

TEST_F(LogitsHooks, one_that_changes_nothing_changes_no_answer) {
  Request request = sampled(token_prompt(9, 320, 5), 30, 7);
  request.n = 3;
  const Completion plain = complete(*engine_, request);
  request.on_logits = leave;
  expect_same(complete(*engine_, request), plain, "alone");
  const std::vector<Request> crowd(5, request);
  for (const Completion& one : Crowd(*engine_).run(crowd)) expect_same(one, plain, "in a crowd");
}

TEST_F(LogitsHooks, it_sees_the_text_before_each_token) {
  Request request = greedy(token_prompt(6, 320, 5), 12);
  const std::vector<TokenId> prompt = std::get<TokenPrompt>(request.prompt);
  std::vector<std::vector<TokenId>> seen;
  request.on_logits = [&seen](const LogitsRow& row) {
    seen.emplace_back(row.text.begin(), row.text.end());
    return row.n_output + 1 == seen.size() && row.choice == 0 && row.logits.size() == 320;
  };
  const Completion made = complete(*engine_, request);
  ASSERT_EQ(seen.size(), made.tokens.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    std::vector<TokenId> expected = prompt;
    expected.insert(expected.end(), made.tokens.begin(), made.tokens.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_EQ(seen[i], expected) << i;
  }
}

TEST_F(LogitsHooks, what_it_takes_out_is_not_chosen) {
  Request request = sampled(token_prompt(6, 320, 5), 40, 3);
  request.sampling.ignore_eos = true;
  request.on_logits = [](const LogitsRow& row) {
    for (size_t token = 0; token < row.logits.size(); ++token) {
      if (token % 2 == row.n_output % 2) row.logits[token] = kNever;
    }
    return true;
  };
  const Completion made = complete(*engine_, request);
  ASSERT_EQ(made.tokens.size(), 40u);
  for (size_t i = 0; i < made.tokens.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(made.tokens[i]) % 2, (i + 1) % 2) << i;
    for (const TokenLogprob& top : made.top_logprobs[i]) EXPECT_EQ(static_cast<size_t>(top.token) % 2, (i + 1) % 2);
  }
}

TEST_F(LogitsHooks, drafts_and_beams_and_constraints_obey_it) {
  Request request = greedy(token_prompt(12, 320, 5), 24);
  request.on_logits = [](const LogitsRow& row) {
    row.logits[0] = row.logits[5] = kNever;
    return true;
  };
  const Completion made = complete(*engine_, request);
  EXPECT_EQ(std::ranges::count(made.tokens, 5), 0);
  request.beams = BeamSearch{.width = 3};
  const Completion searched = complete(*engine_, request);
  EXPECT_EQ(std::ranges::count(searched.tokens, 5), 0);
  request.beams.reset();
  request.constraint = ConstraintSpec{.kind = GrammarKind::kRegex, .source = "[ab]{4,20}"};
  request.on_logits = [](const LogitsRow& row) {
    for (size_t token = 0; token < row.logits.size(); ++token) row.logits[token] = static_cast<float>(token % 7);
    return true;
  };
  const Completion constrained = complete(*engine_, request);
  EXPECT_GE(constrained.text.size(), 4u);
  EXPECT_EQ(constrained.text.find_first_not_of("ab"), std::string::npos) << constrained.text;
}

TEST_F(LogitsHooks, one_that_fails_ends_its_request_alone) {
  Request good = greedy(token_prompt(9, 320, 5), 20);
  const Completion plain = complete(*engine_, good);
  std::vector<Request> requests(4, good);
  requests[0].on_logits = [](const LogitsRow& row) { return row.n_output < 3; };
  requests[1].on_logits = [](const LogitsRow& row) {
    if (row.n_output == 2) row.logits[7] = std::numeric_limits<float>::quiet_NaN();
    return true;
  };
  requests[2].on_logits = [](const LogitsRow& row) -> bool {
    if (row.n_output == 1) throw std::runtime_error("a fault of the caller");
    return true;
  };
  const std::vector<Completion> made = Crowd(*engine_).run(requests);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(made[i].finish, FinishReason::kError) << i;
  expect_same(made[3], plain, "beside the others");
  for (size_t i = 0; i < 2; ++i) {
    const auto alone = engine_->generate(requests[i]);
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().field, "on_logits") << alone.error().message;
  }
  requests[0].on_logits = [](const LogitsRow& row) {
    std::ranges::fill(row.logits, kNever);
    return true;
  };
  EXPECT_FALSE(engine_->generate(requests[0]));
  requests[0].on_logits = [](const LogitsRow& row) {
    row.logits[1] = std::numeric_limits<float>::infinity();
    return true;
  };
  EXPECT_FALSE(engine_->generate(requests[0]));
  EXPECT_EQ(engine_->stats().kv_blocks_used, 0);
}

}  // namespace
}  // namespace candor
