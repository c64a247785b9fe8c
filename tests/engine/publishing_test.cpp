// A device that computes behind the engine's back: the events of a step are handed out while the next one is computed,
// and the last ones at once. Answers, faults and endings are those of a backend that computes before it returns.

#include <algorithm>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/wrap/forwarding_backend.h"
#include "engine/engine_impl.h"
#include "engine_fixture.h"
#include "ranks/rank_requests.h"

namespace candor {
namespace {

// A CPU that says it is a device, and notes what it is asked for.
class NotedDevice final : public backend::ForwardingBackend {
 public:
  NotedDevice(std::unique_ptr<backend::Backend> inner, std::string& notes)
      : ForwardingBackend(std::move(inner)), info_(ForwardingBackend::info()), notes_(notes) {
    info_.device_bytes = info_.free_bytes = uint64_t{1} << 40;
  }

  const backend::BackendInfo& info() const override { return info_; }
  backend::StepTicket end_step() override {
    notes_ += 'l';
    return ForwardingBackend::end_step();
  }
  backend::LogitsView read_logits(backend::StepTicket ticket) override {
    notes_ += 'r';
    return ForwardingBackend::read_logits(ticket);
  }

 private:
  backend::BackendInfo info_;
  std::string& notes_;
};

class Publishing : public testing::TinyModelTest {
 protected:
  std::unique_ptr<Engine> open(bool is_device) {
    const auto backend = [this, is_device](const EngineOptions&) -> Result<std::unique_ptr<backend::Backend>> {
      CANDOR_ASSIGN(auto cpu, backend::make_cpu_backend({.n_threads = 1}));
      if (!is_device) return cpu;
      return std::make_unique<NotedDevice>(std::move(cpu), notes_);
    };
    if (path_.empty()) path_ = tiny_path(tiny_options());
    auto engine = engine::open_with_backend(testing::rank_test_options(path_), backend);
    EXPECT_TRUE(engine) << engine.error().message;
    notes_.clear();
    return engine ? std::move(*engine) : nullptr;
  }
  // Of one request, each event as an 'e'; the callback throws at event number `bad`.
  std::vector<TokenEvent> events_of(Engine& engine, const Request& request, size_t bad = 0) {
    std::vector<TokenEvent> events;
    std::promise<void> end;
    const auto id = engine.submit(request, [&, bad](const TokenEvent& event) {
      notes_ += 'e';
      events.push_back(event);
      const bool throws = events.size() == bad;
      if (event.summary) end.set_value();
      if (throws) throw std::runtime_error("no more room");
    });
    EXPECT_TRUE(id.has_value());
    end.get_future().wait();
    return events;
  }
  static Request request(int64_t max_tokens) {
    Request request = testing::sampled(testing::token_prompt(9, 320, 1), max_tokens, 1);
    request.sampling.ignore_eos = true;
    return request;
  }

  std::filesystem::path path_;
  std::string notes_;  // l: launched, r: read, e: an event
};

TEST_F(Publishing, waits_for_the_next_launch_and_not_for_its_logits) {
  const auto device = open(true);
  events_of(*device, request(4));
  EXPECT_EQ(notes_, "lrlerlerlere");
}

TEST_F(Publishing, of_a_backend_that_computes_at_once_is_at_once) {
  const auto cpu = open(false);
  EXPECT_EQ(events_of(*cpu, request(4)).size(), 4u);
  EXPECT_EQ(notes_, "eeee");
}

TEST_F(Publishing, later_changes_no_answer) {
  const auto cpu = open(false);
  const auto device = open(true);
  std::vector<Request> requests = testing::rank_test_requests(cpu->info());
  requests.push_back(request(9));
  requests.back().n = 3;
  requests.push_back(request(20));
  requests.back().sampling.stop = {"e", "a", " "};
  const auto wanted = testing::Crowd(*cpu).run(requests);
  const auto seen = testing::Crowd(*device).run(requests);
  for (size_t i = 0; i < requests.size(); ++i) testing::expect_same(seen[i], wanted[i], std::to_string(i));
}

TEST_F(Publishing, ends_a_request_whose_callback_throws_while_its_next_token_is_computed) {
  const auto device = open(true);
  const Completion expected = testing::complete(*device, request(12));
  for (size_t bad = 1; bad <= 12; ++bad) {
    std::promise<Completion> beside;
    std::thread other([&] { beside.set_value(testing::complete(*device, request(12))); });
    const auto events = events_of(*device, request(12), bad);
    other.join();
    testing::expect_same(beside.get_future().get(), expected, "beside it");
    EXPECT_EQ(events.size(), bad + (bad < 12 ? 1 : 0));
    EXPECT_EQ(events.back().finish, bad < 12 ? FinishReason::kError : FinishReason::kLength);
  }
  EXPECT_EQ(device->stats().n_submitted, device->stats().n_finished);
}

TEST_F(Publishing, tells_of_what_was_computed_before_a_request_is_cancelled) {
  const auto device = open(true);
  std::vector<TokenEvent> events;
  std::promise<void> end;
  const auto id = device->submit(request(100), [&](const TokenEvent& event) {
    events.push_back(event);
    if (events.size() == 3) {
      EXPECT_TRUE(device->cancel(event.request));
    }
    if (event.summary) end.set_value();
  });
  ASSERT_TRUE(id.has_value());
  end.get_future().wait();
  EXPECT_EQ(events.back().finish, FinishReason::kCancelled);
  EXPECT_EQ(events.back().summary->usage.completion_tokens, static_cast<int64_t>(events.size()) - 1);
}

// Of whole texts: what each token said, how it ended, and what was counted.
void expect_same_events(const std::vector<TokenEvent>& seen, const std::vector<TokenEvent>& wanted) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(seen[i].choice, wanted[i].choice);
    EXPECT_EQ(seen[i].token, wanted[i].token);
    EXPECT_EQ(seen[i].text, wanted[i].text);
    EXPECT_EQ(seen[i].finish, wanted[i].finish);
    EXPECT_EQ(seen[i].stop_index, wanted[i].stop_index);
  }
  ASSERT_TRUE(seen.back().summary && wanted.back().summary);
  EXPECT_EQ(seen.back().summary->usage.completion_tokens, wanted.back().summary->usage.completion_tokens);
  EXPECT_EQ(seen.back().summary->usage.token_layers, wanted.back().summary->usage.token_layers);
}

TEST_F(Publishing, of_a_stop_string_takes_one_row_more_and_counts_none) {
  const auto cpu = open(false);
  const auto device = open(true);
  const std::vector<TokenEvent> whole = events_of(*cpu, request(12));
  size_t n_stopped = 0;
  for (size_t i = 0; i + 1 < whole.size(); ++i) {
    if (whole[i].text.empty()) continue;
    Request stopped = request(12);
    stopped.sampling.stop = {whole[i].text};
    const std::vector<TokenEvent> wanted = events_of(*cpu, stopped);
    notes_.clear();
    expect_same_events(events_of(*device, stopped), wanted);
    if (wanted.back().finish != FinishReason::kStopString || wanted.size() == 12) continue;
    ++n_stopped;
    EXPECT_EQ(std::ranges::count(notes_, 'l'), std::ssize(wanted) + 1);
  }
  EXPECT_GT(n_stopped, 2u);
}

TEST_F(Publishing, of_a_stop_string_that_was_found_too_late_to_be_cancelled) {
  const auto device = open(true);
  const std::vector<TokenEvent> whole = events_of(*device, request(12));
  for (size_t i = 1; i + 1 < whole.size(); ++i) {
    if (whole[i].text.empty()) continue;
    Request stopped = request(12);
    stopped.sampling.stop = {whole[i].text};
    std::vector<TokenEvent> events;
    std::promise<void> end;
    const auto id = device->submit(stopped, [&](const TokenEvent& event) {
      events.push_back(event);
      if (events.size() == 1) {
        EXPECT_EQ(device->cancel(event.request).has_value(), !event.summary);
      }
      if (event.summary) end.set_value();
    });
    ASSERT_TRUE(id.has_value());
    end.get_future().wait();
    const int64_t n_tokens = std::ranges::count_if(events, [](const TokenEvent& event) { return event.token >= 0; });
    EXPECT_EQ(events.back().summary->usage.completion_tokens, n_tokens);
    EXPECT_TRUE(events.back().finish.has_value());
  }
  EXPECT_EQ(device->stats().n_submitted, device->stats().n_finished);
}

}  // namespace
}  // namespace candor
