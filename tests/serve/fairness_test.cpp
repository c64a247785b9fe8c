// What one key, one kind of request or one id may take from the others.

#include <atomic>
#include <future>
#include <thread>

#include "serve/socket_client.h"

namespace candor::testing {
namespace {

const Headers kAlice = {"Authorization: Bearer a"};
const Headers kBob = {"Authorization: Bearer b"};

RunningOptions two_keys(int n_running, int n_queued) {
  RunningOptions options = Running::defaults();
  options.service.access.keys = {http::make_key("alice", "a"), http::make_key("bob", "b")};
  options.engine.max_running = n_running;
  options.engine.max_queued = n_queued;
  return options;
}

std::string with_key(std::string request, const std::string& secret) {
  return request.insert(request.find("\r\n") + 2, "Authorization: Bearer " + secret + "\r\n");
}

TEST(fairness, a_key_that_fills_its_share_takes_nothing_from_another) {
  Running running(two_keys(2, 14));
  Json story = user_says("Tell me a story", 40);
  story["ignore_eos"] = true;
  std::vector<std::unique_ptr<RawClient>> alice;
  for (int i = 0; i < 40; ++i) {
    alice.push_back(std::make_unique<RawClient>(running.port()));
    alice.back()->send(with_key(streaming_request(story), "a"));
  }
  for (int i = 0; i < 12; ++i) {
    const ClientReply reply = post(running.port(), "/v1/chat/completions", user_says("hi", 1), kBob);
    EXPECT_EQ(reply.status, 200) << i << reply.body;
  }
  int n_refused = 0;
  for (const auto& client : alice) n_refused += client->read_until("\r\n\r\n").starts_with("HTTP/1.1 429") ? 1 : 0;
  EXPECT_GE(n_refused, 20);
  EXPECT_LE(n_refused, 32);  // three quarters of 16 places, half of them while bob holds some
  alice.clear();
  EXPECT_TRUE(running.becomes_idle());
}

TEST(fairness, answers_count_not_requests) {
  Running running(two_keys(2, 14));
  Json many = user_says("hi", 1);
  many["n"] = 12;
  EXPECT_EQ(post(running.port(), "/v1/chat/completions", many, kAlice).status, 200);
  EXPECT_TRUE(running.becomes_idle());
  RawClient held(running.port());
  many["max_tokens"] = 400;
  many["ignore_eos"] = true;
  held.send(with_key(streaming_request(many), "a"));
  EXPECT_NE(held.read_until("data: ").find("200 OK"), std::string::npos);
  const ClientReply more = post(running.port(), "/v1/chat/completions", user_says("hi", 1), kAlice);
  EXPECT_EQ(more.status, 429);
  EXPECT_NE(more.body.find("this key"), std::string::npos) << more.body;
  EXPECT_EQ(post(running.port(), "/v1/chat/completions", user_says("hi", 1), kBob).status, 200);
}

struct Workers {
  explicit Workers(const http::WorkerOptions& options) : pool(options, faults) {}

  const std::unique_ptr<obs::LogSink> sink = obs::make_stderr_sink();
  const obs::Log log{*sink, obs::LogLevel::kOff};
  http::Faults faults{log};
  http::WorkerPool pool;
};

TEST(fairness, large_tasks_leave_a_thread_to_the_others) {
  std::mutex gate;
  Workers workers({.n_threads = 2, .max_waiting = 40, .n_keys = 0});
  const std::lock_guard closed(gate);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(workers.pool.try_post({.run = [&] { const std::lock_guard open(gate); }, .is_large = true}));
  }
  std::promise<void> small;
  ASSERT_TRUE(workers.pool.try_post({.run = [&] { small.set_value(); }}));
  small.get_future().wait();
}

TEST(fairness, keys_take_turns_in_the_queue_of_the_workers) {
  std::mutex mutex;
  std::string order;
  std::mutex gate;
  {
    Workers workers({.n_threads = 1, .max_waiting = 40, .n_keys = 2});
    std::unique_lock closed(gate);
    ASSERT_TRUE(workers.pool.try_post({.run = [&] { const std::lock_guard open(gate); }, .key = 0}));
    const auto add = [&](int32_t key, char letter) {
      return workers.pool.try_post({.run =
                                        [&order, &mutex, letter] {
                                          const std::lock_guard lock(mutex);
                                          order += letter;
                                        },
                                    .key = key});
    };
    int n_alice = 0;
    while (add(0, 'a')) ++n_alice;
    EXPECT_LE(n_alice, 31);
    EXPECT_GE(n_alice, 28);
    EXPECT_TRUE(add(1, 'b'));
    closed.unlock();
    const auto n_done = [&] {
      const std::lock_guard lock(mutex);
      return order.size();
    };
    while (n_done() <= static_cast<size_t>(n_alice)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_LE(order.find('b'), 2u) << order;
}

TEST(fairness, what_no_thread_has_begun_is_dropped) {
  std::mutex gate;
  std::atomic<int> n_run = 0;
  std::atomic<int> n_dropped = 0;
  {
    Workers workers({.n_threads = 1, .max_waiting = 40, .n_keys = 1});
    std::promise<void> begun;
    std::unique_lock closed(gate);
    ASSERT_TRUE(workers.pool.try_post({.run = [&] {
      begun.set_value();
      const std::lock_guard open(gate);
      ++n_run;
    }}));
    begun.get_future().wait();
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(workers.pool.try_post(
          {.run = [&] { ++n_run; }, .drop = [&] { ++n_dropped; }, .key = i % 2 - 1, .is_large = i < 3}));
    }
    workers.pool.drop_waiting();
    EXPECT_EQ(n_dropped, 6);
    EXPECT_EQ(n_run, 0);
  }
  EXPECT_EQ(n_run, 1);
  EXPECT_EQ(n_dropped, 6);
}

// Large requests that wait for a worker are refused where the server ends. How many wait depends on the machine; that
// none of those is forgotten does not.
TEST(fairness, each_large_request_has_a_reply_when_the_server_ends) {
  Running running;
  std::vector<std::unique_ptr<RawClient>> large;
  const std::string text = R"({"content":")" + std::string(4u << 20, 'a') + "\"}";
  for (int i = 0; i < 6; ++i) {
    large.push_back(std::make_unique<RawClient>(running.port()));
    large.back()->send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
                       "\r\n\r\n" + text);
  }
  EXPECT_EQ(ask(running.port(), "POST", "/tokenize", R"({"content":"a"})").status, 200);  // they are in the queue
  running.service().begin_drain();
  EXPECT_EQ(ask(running.port(), "POST", "/tokenize", R"({"content":"a"})").status, 503);
  EXPECT_EQ(ask(running.port(), "GET", "/health").status, 200);
  running.service().abort_all();
  for (const auto& client : large) {
    const int status = parse_reply(client->read_until("\r\n\r\n")).status;
    EXPECT_TRUE(status == 200 || status == 503) << status;
  }
}

// The generation before it may still be on its way out.
TEST(fairness, an_id_that_is_used_again_belongs_to_its_last_generation) {
  Running running;
  SocketClient client(running.port());
  ASSERT_TRUE(client.is_open);
  Json body = user_says("Tell me a story", 3);
  body["ignore_eos"] = true;
  body["stream"] = true;
  for (int round = 0; round < 60; ++round) {
    client.send({{"id", "a"}, {"method", "chat.completions"}, {"body", body}});
    EXPECT_EQ(client.next_json()["event"], "chunk");
    client.send({{"id", "a"}, {"method", "cancel"}});
    Json frame;
    do frame = client.next_json();
    while (frame["event"] == "chunk");
    const bool is_done = frame["event"] == "done";
    EXPECT_TRUE(is_done || frame["event"] == "cancelled") << frame;
    if (is_done) {
      frame = client.next_json();
      EXPECT_EQ(frame["event"], "error");  // nothing of this id is in work
    }
  }
  Json whole = user_says("Tell me a story", 3);
  client.send({{"id", "a"}, {"method", "chat.completions"}, {"body", whole}});
  EXPECT_EQ(client.next_json()["event"], "whole");
  EXPECT_TRUE(running.becomes_idle());
}

}  // namespace
}  // namespace candor::testing
