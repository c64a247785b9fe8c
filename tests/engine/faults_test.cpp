// Callbacks that throw: the request ends in an error that says so, others do not notice, and it is counted.

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include "engine_fixture.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;
using testing::token_prompt;

class Faults : public testing::TinyModelTest {
 protected:
  Faults() {
    EngineOptions options = testing::options_for(tiny_path(tiny_options()));
    options.n_ctx = 128;
    options.costs = StepCosts{.points = {{1, 1.0}, {64, 4.0}}, .attend_ns = 0};
    engine_ = testing::open_or_fail(options);
  }
  static Request request(uint64_t seed, int32_t n = 1) {
    Request request = sampled(token_prompt(9, 320, seed), 12, seed);
    request.sampling.ignore_eos = true;
    request.n = n;
    return request;
  }
  // All events of a request whose callback throws at those that `is_bad` names.
  template <class IsBad, class Thrown>
  std::vector<TokenEvent> events_of(const Request& request, IsBad is_bad, Thrown thrown) {
    std::vector<TokenEvent> events;
    std::promise<void> end;
    const auto id = engine_->submit(request, [&events, &end, is_bad, thrown](const TokenEvent& event) {
      events.push_back(event);
      const bool throws = is_bad(events.size(), event);
      if (event.summary) end.set_value();  // from here on what the waiting thread has is its own
      if (throws) throw thrown;
    });
    EXPECT_TRUE(id.has_value());
    end.get_future().wait();
    return events;
  }
  void expect_nothing_is_held() {
    complete(*engine_, request(99));
    const EngineStats stats = engine_->stats();
    EXPECT_EQ(stats.n_running + stats.n_waiting + stats.kv_blocks_used, 0);
    EXPECT_EQ(stats.n_submitted, stats.n_finished);
  }
  std::unique_ptr<Engine> engine_;
};

TEST_F(Faults, of_a_callback_end_its_request_in_an_error_and_no_other) {
  const Completion expected = complete(*engine_, request(1));
  std::promise<Completion> beside;
  std::thread other([&] { beside.set_value(complete(*engine_, request(1))); });
  const auto third = [](size_t n, const TokenEvent&) { return n == 3; };
  const auto events = events_of(request(2), third, std::runtime_error("no more room"));
  other.join();
  testing::expect_same(beside.get_future().get(), expected, "beside it");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events.back().finish, FinishReason::kError);
  ASSERT_TRUE(events.back().error.has_value());
  EXPECT_EQ(events.back().error->kind, ErrorKind::kInternal);
  EXPECT_NE(events.back().error->message.find("no more room"), std::string::npos) << events.back().error->message;
  EXPECT_EQ(engine_->metrics().n_faults, 1u);
  expect_nothing_is_held();
}

TEST_F(Faults, of_any_type_at_any_event_leave_one_end_for_each_choice) {
  for (const int32_t n : {1, 3}) {
    for (size_t bad = 1; bad <= 12 * static_cast<size_t>(n); bad += 5) {
      const auto events = events_of(request(bad, n), [bad](size_t i, const TokenEvent&) { return i == bad; }, 5);
      std::vector<int> n_ends(static_cast<size_t>(n));
      for (const TokenEvent& event : events) n_ends[static_cast<size_t>(event.choice)] += event.finish ? 1 : 0;
      EXPECT_EQ(n_ends, std::vector<int>(static_cast<size_t>(n), 1)) << n << " choices, event " << bad;
    }
  }
  expect_nothing_is_held();
}

TEST_F(Faults, of_every_event_are_survived) {
  const auto always = [](size_t, const TokenEvent&) { return true; };
  const auto events = events_of(request(4, 3), always, std::bad_alloc());
  EXPECT_TRUE(events.back().summary.has_value());
  EXPECT_EQ(events.back().error->kind, ErrorKind::kOutOfMemory);
  Request beams = request(4);
  beams.sampling.temperature = 0.0;
  beams.beams = BeamSearch{.width = 3};
  EXPECT_TRUE(events_of(beams, always, 1).back().summary.has_value());
  Request scored = request(4);
  scored.sampling.prompt_logprobs = 0;
  EXPECT_TRUE(events_of(scored, always, 1).back().summary.has_value());
  expect_nothing_is_held();
}

TEST_F(Faults, of_an_observer_are_what_generate_returns) {
  int n_events = 0;
  const auto result = engine_->generate(request(5), [&](const TokenEvent&) {
    if (++n_events >= 2) throw std::runtime_error("the observer gave up");
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("the observer gave up"), std::string::npos) << result.error().message;
  const auto last = engine_->generate(request(5), [](const TokenEvent& event) {
    if (event.summary) throw std::runtime_error("at the very end");
  });
  ASSERT_FALSE(last.has_value());
  EXPECT_NE(last.error().message.find("at the very end"), std::string::npos) << last.error().message;
  expect_nothing_is_held();
}

TEST_F(Faults, of_a_step_callback_are_counted_and_nothing_else) {
  const Completion expected = complete(*engine_, request(6));
  engine_->on_step([](const StepReport&) { throw std::runtime_error("no reports, please"); });
  testing::expect_same(complete(*engine_, request(6)), expected, "with a throwing step callback");
  engine_->on_step({});
  EXPECT_GE(engine_->metrics().n_faults, 11u);
}

}  // namespace
}  // namespace candor
