// Bytes that are not quite HTTP: exact status, and never a second answer.

#include <sys/socket.h>

#include <thread>
#include <vector>

#include "serve/client.h"
#include "serve/interfaces.h"

namespace candor::testing {
namespace {

class protocol : public ServerTest {
 protected:
  static std::string raw(const std::string& bytes) {
    RawClient client(port());
    client.send(bytes);
    client.half_close();
    return client.read_all(std::chrono::seconds(5));
  }
  static size_t n_answers(const std::string& bytes) {
    size_t n = 0;
    for (size_t at = 0; (at = bytes.find("HTTP/1.1 ", at)) != std::string::npos; at += 9) {
      n += at + 9 < bytes.size() && std::isdigit(static_cast<unsigned char>(bytes[at + 9])) != 0 ? 1 : 0;
    }
    return n;
  }
  static void expect_status(const std::string& bytes, int status) {
    RawClient client(port());
    client.send(bytes);
    const std::string answer = client.read_all(std::chrono::seconds(5));
    EXPECT_EQ(parse_reply(answer).status, status) << bytes.substr(0, 200) << "\n -> " << answer.substr(0, 300);
    EXPECT_EQ(n_answers(answer), 1u) << bytes.substr(0, 200);
  }
};

const std::string kHost = "Host: 127.0.0.1\r\n";

TEST_F(protocol, ambiguous_framing_is_refused_and_the_connection_closed) {
  const std::string post = "POST /v1/completions HTTP/1.1\r\n" + kHost;
  expect_status(post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400);
  expect_status(post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", 400);
  expect_status(post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd", 400);
  expect_status(post + "Content-Length: -4\r\n\r\n", 400);
  expect_status(post + "Content-Length: 99999999999999999999\r\n\r\n", 400);
  expect_status(post + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400);
  expect_status(post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 400);
  for (const char* size : {"-2", "0x10", "10000000000000000", "g", ""}) {
    expect_status(post + "Transfer-Encoding: chunked\r\n\r\n" + size + "\r\nab\r\n0\r\n\r\n", 400);
  }
}

TEST_F(protocol, heads_that_are_not_http_are_refused) {
  const std::string get = "GET /health HTTP/1.1\r\n";
  expect_status("GET /health HTTP/1.1\nHost: 127.0.0.1\n\n", 400);
  expect_status(get + "Host: 127.0.0.1\r\nX: a" + std::string(1, '\0') + "b\r\n\r\n", 400);
  expect_status(get + "Host : 127.0.0.1\r\n\r\n", 400);
  expect_status(get + kHost + "X: a\r\n b\r\n\r\n", 400);
  expect_status(get + kHost + kHost + "\r\n", 400);
  expect_status(get + "\r\n", 400);
  expect_status("GET /health HTTP/2.0\r\n" + kHost + "\r\n", 505);
  expect_status("GET  /health HTTP/1.1\r\n" + kHost + "\r\n", 400);
  expect_status("\x16\x03\x01\x02\r\n\r\n", 400);
}

TEST_F(protocol, heads_beyond_the_limits_are_refused) {
  expect_status("GET /" + std::string(1u << 20, 'a') + " HTTP/1.1\r\n" + kHost + "\r\n", 414);
  expect_status("GET /health HTTP/1.1\r\n" + kHost + "X: " + std::string(2u << 20, 'a') + "\r\n\r\n", 431);
  std::string fields;
  for (int i = 0; i < 10'000; ++i) fields += "a: b\r\n";
  expect_status("GET /health HTTP/1.1\r\n" + kHost + fields + "\r\n", 431);
}

TEST_F(protocol, a_body_beyond_the_limit_is_refused_before_it_is_read) {
  const std::string post = "POST /v1/completions HTTP/1.1\r\n" + kHost;
  expect_status(post + "Content-Length: 16777217\r\n\r\n", 413);
  RawClient client(port());
  client.send(post + "Transfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "100000\r\n" + std::string(1u << 20, ' ') + "\r\n";
  for (int i = 0; i < 17; ++i) client.send(chunk);
  EXPECT_EQ(parse_reply(client.read_until("\r\n\r\n")).status, 413);
}

TEST_F(protocol, what_stands_in_a_body_is_not_a_request) {
  const std::string inner = "GET /health HTTP/1.1\r\n" + kHost + "\r\n";
  const std::string outer =
      "GET /health HTTP/1.1\r\nConnection: close\r\n" + kHost + "Content-Length: " + std::to_string(inner.size());
  RawClient client(port());
  client.send(outer + "\r\n\r\n" + inner);
  EXPECT_EQ(n_answers(client.read_all(std::chrono::seconds(5))), 1u);
}

TEST_F(protocol, requests_in_a_row_are_answered_in_order_on_one_connection) {
  RawClient client(port());
  client.send("GET /health HTTP/1.1\r\n" + kHost + "\r\nGET /v1/models HTTP/1.1\r\nConnection: close\r\n" + kHost +
              "\r\n");
  const std::string answers = client.read_all(std::chrono::seconds(5));
  EXPECT_EQ(n_answers(answers), 2u);
  EXPECT_LT(answers.find("\"ok\""), answers.find("\"pocket\""));
}

TEST_F(protocol, paths_that_climb_are_not_found) {
  for (const char* path :
       {"/v1/../../etc/passwd", "/%2e%2e/etc/passwd", "/..%5cwindows", "/v1/models/..%2f..%2fetc", "/api", "/v1"}) {
    EXPECT_EQ(ask(port(), "GET", path).status, 404) << path;
  }
  EXPECT_EQ(ask(port(), "PUT", "/v1/models").status, 405);
  EXPECT_EQ(ask(port(), "GET", "/v1/completions").status, 405);
}

TEST_F(protocol, other_hosts_and_origins_are_forbidden) {
  EXPECT_EQ(ask(port(), "GET", "/health", {}, {"Host: evil.com"}).status, 403);
  EXPECT_EQ(ask(port(), "GET", "/health", {}, {"Host: localhost:1234"}).status, 200);
  const std::string body = user_says("hi", 1).dump();
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", body, {"Origin: http://localhost.evil.com"}).status, 403);
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", body, {"Origin: null"}).status, 403);
  EXPECT_EQ(
      ask(port(), "GET", "/v1/stream", {}, {"Origin: http://evil.com", "Upgrade: websocket", "Connection: Upgrade"})
          .status,
      403);
  const ClientReply preflight = ask(port(), "OPTIONS", "/v1/chat/completions", {}, {"Origin: http://evil.com"});
  EXPECT_EQ(preflight.head.find("access-control"), std::string::npos);
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", body, {"Origin: http://127.0.0.1", "Content-Type: text/plain"})
                .status,
            415);
  EXPECT_EQ(
      ask(port(), "POST", "/v1/chat/completions", body, {"Origin: http://127.0.0.1", "Content-Type: application/json"})
          .status,
      200);
  EXPECT_EQ(
      ask(port(), "POST", "/v1/chat/completions", body, {"Content-Type: application/x-www-form-urlencoded"}).status,
      200);
  EXPECT_EQ(ask(port(), "POST", "/v1/chat/completions", body, {"Content-Encoding: gzip"}).status, 415);
}

TEST_F(protocol, a_client_that_asks_first_is_told_to_go_on) {
  RawClient client(port());
  const std::string body = user_says("hi", 1).dump();
  client.send("POST /v1/chat/completions HTTP/1.1\r\nConnection: close\r\nExpect: 100-continue\r\n" + kHost +
              "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_TRUE(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 100 Continue"));
  client.send(body);
  EXPECT_EQ(parse_reply(client.read_all()).status, 200);
}

TEST_F(protocol, many_idle_connections_disturb_nobody) {
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 500; ++i) idle.push_back(std::make_unique<RawClient>(port()));
  EXPECT_EQ(post(port(), "/v1/chat/completions", user_says("hi", 2)).status, 200);
}

TEST(slow_clients, a_head_that_trickles_in_is_timed_out) {
  RunningOptions options = Running::defaults();
  options.server.head_timeout = std::chrono::milliseconds(300);
  options.server.body_timeout = std::chrono::milliseconds(300);
  Running running(options);
  RawClient head(running.port());
  head.send("GET /hea");
  EXPECT_EQ(parse_reply(head.read_all()).status, 408);
  RawClient body(running.port());
  body.send("POST /v1/completions HTTP/1.1\r\n" + kHost + "Content-Length: 100\r\n\r\n{");
  EXPECT_EQ(parse_reply(body.read_all()).status, 408);
}

TEST(slow_clients, a_reader_that_never_reads_is_cut_and_frees_everything) {
  RunningOptions options = Running::defaults();
  options.server.waiting_bytes = 1000;
  Running running(options);
  RawClient lazy(running.port());
  Json body = user_says("Tell me a story", 400);
  body["logprobs"] = true;
  body["top_logprobs"] = 20;
  body["ignore_eos"] = true;
  lazy.send(streaming_request(std::move(body)));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < 20 && !running.becomes_idle(); ++i) {
  }
  EXPECT_TRUE(running.becomes_idle());
}

TEST(keys, every_route_but_health_and_the_pages_files_wants_one) {
  RunningOptions options = Running::defaults();
  options.service.access.keys = {http::make_key("alice", "secret-a"), http::make_key("bob", "secret-b")};
  Running running(options);
  std::vector<serve::Route> routes;
  for (const serve::Api* api : serve::interfaces()) routes.insert(routes.end(), api->routes.begin(), api->routes.end());
  for (const serve::Route& route : routes) {
    const bool is_prefix = route.path.size() > 1 && route.path.ends_with('/');
    const std::string path = std::string(route.path) + (is_prefix ? "pocket" : "");
    const std::string body = route.method == "POST" ? "{}" : "";
    const auto status = [&](const Headers& headers) {
      return ask(running.port(), std::string(route.method), path, body, headers).status;
    };
    if (!route.needs_key) {
      EXPECT_TRUE(path == "/health" || path == "/" || path.starts_with("/ui/")) << path;
      continue;
    }
    EXPECT_EQ(status({}), 401) << path;
    EXPECT_EQ(status({"Authorization: Bearer wrong"}), 401) << path;
    EXPECT_EQ(status({"Authorization: Bearer "}), 401) << path;
    EXPECT_EQ(status({"Authorization: Bearer " + std::string(20'000, 'x')}), 401) << path;
    EXPECT_NE(status({"Authorization: Bearer secret-b"}), 401) << path;
    EXPECT_NE(status({"authorization: bearer secret-a"}), 401) << path;
  }
  EXPECT_EQ(ask(running.port(), "GET", "/health").status, 200);
  EXPECT_EQ(ask(running.port(), "GET", "/nowhere").status, 401);
}

TEST(keys, a_key_may_have_only_so_many_generations_in_work) {
  RunningOptions options = Running::defaults();
  options.service.max_per_key = 1;
  Running running(options);
  RawClient first(running.port());
  begin_story(first, 200);
  const ClientReply second = post(running.port(), "/v1/chat/completions", user_says("hi", 1));
  EXPECT_EQ(second.status, 429);
  EXPECT_NE(second.head.find("retry-after"), std::string::npos);
}

}  // namespace
}  // namespace candor::testing
