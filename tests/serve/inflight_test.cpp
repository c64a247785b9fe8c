// One limit on the bytes of all requests and replies: what has no room is refused at its head, and what was held is
// given back.

#include <atomic>
#include <thread>

#include "serve/socket_client.h"

namespace candor::testing {
namespace {

constexpr size_t kMb = 1u << 20;

RunningOptions narrow(size_t limit_mb, size_t body_mb) {
  RunningOptions options = Running::defaults();
  options.service.inflight_bytes = static_cast<int64_t>(limit_mb * kMb);
  options.server.body_bytes = body_mb * kMb;
  return options;
}

std::string head_of(const std::string& framing) {
  return "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + framing + "\r\n\r\n";
}

std::string length(size_t n) {
  return "Content-Length: " + std::to_string(n);
}

// A string of so many bytes, as the body of /tokenize.
std::string text_body(size_t n_bytes) {
  return R"({"content":")" + std::string(n_bytes - 14, ' ') + "\"}";
}

class inflight : public ::testing::Test {
 protected:
  static bool all_is_given_back(Running& running) {
    for (int i = 0; i < 1000 && running.service().bytes().used() != 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return running.service().bytes().used() == 0;
  }
  static void expect_refused(const ClientReply& reply) {
    EXPECT_EQ(reply.status, 503) << reply.body;
    EXPECT_EQ(reply.json()["error"]["type"], "server_error");
    EXPECT_NE(reply.head.find("retry-after"), std::string::npos);
    EXPECT_NE(reply.head.find("connection: close"), std::string::npos);
  }
};

TEST_F(inflight, bodies_beyond_the_limit_are_refused_before_they_are_read) {
  Running running(narrow(4, 2));
  {
    RawClient first(running.port());
    RawClient second(running.port());
    first.send(head_of(length(2 * kMb)));
    second.send(head_of(length(2 * kMb)));
    for (int i = 0; i < 1000 && running.service().bytes().used() < static_cast<int64_t>(4 * kMb); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    RawClient third(running.port());
    third.send(head_of(length(100) + "\r\nExpect: 100-continue"));
    expect_refused(parse_reply(third.read_all()));
    EXPECT_EQ(ask(running.port(), "GET", "/health").status, 200);
    EXPECT_NE(ask(running.port(), "GET", "/metrics").body.find("candor_inflight_bytes 4194304"), std::string::npos);
  }
  EXPECT_TRUE(all_is_given_back(running));
  EXPECT_EQ(ask(running.port(), "POST", "/tokenize", text_body(kMb)).status, 200);
  EXPECT_TRUE(all_is_given_back(running));
}

TEST_F(inflight, a_body_in_chunks_counts_as_it_comes) {
  Running running(narrow(4, 3));
  RawClient first(running.port());
  first.send(head_of(length(3 * kMb)));
  for (int i = 0; i < 1000 && running.service().bytes().used() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  RawClient chunked(running.port());
  chunked.send(head_of("Transfer-Encoding: chunked") + "200000\r\n");
  for (int i = 0; i < 32 && chunked.send(std::string(kMb / 16, ' ')); ++i) {
  }
  expect_refused(parse_reply(chunked.read_all()));
}

TEST_F(inflight, a_hundred_large_bodies_take_no_more_memory_than_the_limit) {
  Running running(narrow(8, 4));
  EXPECT_EQ(ask(running.port(), "POST", "/tokenize", text_body(2 * kMb)).status, 200);  // what stays allocated
  const int64_t before = trimmed_resident_bytes();
  {
    std::vector<std::unique_ptr<RawClient>> clients;
    const std::string part(kMb, ' ');
    for (int i = 0; i < 100; ++i) {
      clients.push_back(std::make_unique<RawClient>(running.port()));
      clients.back()->send(head_of(length(4 * kMb)));
      for (int j = 0; j < 3 && clients.back()->send(part); ++j) {
      }
    }
    EXPECT_LE(running.service().bytes().used(), static_cast<int64_t>(8 * kMb));
    EXPECT_LT(trimmed_resident_bytes(), before + static_cast<int64_t>(64 * kMb));
    EXPECT_EQ(ask(running.port(), "GET", "/health").status, 200);
  }
  EXPECT_TRUE(all_is_given_back(running));
}

TEST_F(inflight, one_key_leaves_room_for_the_bodies_of_another) {
  RunningOptions options = narrow(8, 2);
  options.service.access.keys = {http::make_key("alice", "a"), http::make_key("bob", "b")};
  Running running(options);
  std::vector<std::unique_ptr<RawClient>> alice;
  for (int i = 0; i < 10; ++i) {
    alice.push_back(std::make_unique<RawClient>(running.port()));
    alice.back()->send(head_of(length(2 * kMb) + "\r\nAuthorization: Bearer a"));
  }
  for (int i = 0; i < 1000 && running.service().bytes().used() < static_cast<int64_t>(6 * kMb); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(ask(running.port(), "POST", "/tokenize", text_body(kMb), {"Authorization: Bearer b"}).status, 200);
}

TEST_F(inflight, a_socket_is_read_no_faster_than_its_messages_are_dealt_with) {
  Running running(narrow(64, 1));
  SocketClient client(running.port());
  ASSERT_TRUE(client.is_open);
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> peak{0};
  std::thread watch([&] {
    while (!is_over) {
      peak = std::max<int64_t>(peak, running.service().bytes().used());
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  constexpr int kMessages = 400;
  std::thread sender([&] {
    const Json body = {{"prompt", std::string(60'000, 'a')}, {"max_tokens", 1}};
    const std::string frame =
        SocketClient::masked('\x81', Json{{"id", "a"}, {"method", "completions"}, {"body", body}}.dump());
    for (int i = 0; i < kMessages && client.raw().send(frame); ++i) {
    }
  });
  int n_errors = 0;
  while (n_errors < kMessages && client.next_json().value("event", "") == "error") ++n_errors;
  sender.join();
  is_over = true;
  watch.join();
  EXPECT_EQ(n_errors, kMessages);  // each is longer than the context
  EXPECT_LT(peak, static_cast<int64_t>(4 * kMb));
  EXPECT_TRUE(all_is_given_back(running));
}

TEST_F(inflight, a_socket_whose_message_has_no_room_is_told_to_try_again) {
  Running running(narrow(2, 1));
  RawClient first(running.port());
  first.send(head_of(length(kMb)));
  RawClient second(running.port());
  second.send(head_of(length(kMb)));
  SocketClient client(running.port());
  ASSERT_TRUE(client.is_open);
  for (int i = 0; i < 1000 && running.service().bytes().used() < static_cast<int64_t>(2 * kMb); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  client.raw().send(SocketClient::masked('\x81', std::string(60'000, ' ')));
  EXPECT_EQ(client.close_code(), 1013);
}

TEST_F(inflight, tokens_of_a_whole_body_are_answered_within_memory) {
  Running running(narrow(64, 4));
  [[maybe_unused]] const int64_t before = trimmed_resident_bytes();
  std::string body = R"({"with_pieces":true,"content":")";
  body.append(kMb / 2, 'x');
  const ClientReply reply = ask(running.port(), "POST", "/tokenize", body + "\"}");
  EXPECT_EQ(reply.status, 200);
  EXPECT_GT(reply.json()["count"], 1000);
#ifndef CANDOR_SANITIZED  // freed memory stays in quarantine there
  EXPECT_LT(trimmed_resident_bytes(), before + static_cast<int64_t>(128 * kMb));
#endif
}

}  // namespace
}  // namespace candor::testing
