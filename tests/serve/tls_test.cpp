// The server by TLS: the same replies as in the clear, certificates that change under open connections, and clients
// that do not speak it, stop in the middle of it, or come in a crowd.

#include <deque>
#include <map>
#include <thread>

#include "serve/socket_client.h"
#include "serve/tls_client.h"
#include "support/certificate.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

std::shared_ptr<http::TlsIdentity> identity_named(const std::string& name) {
  const TempFolder folder;
  write_certificate(folder.path(), {.name = name});
  auto identity = http::TlsIdentity::load({.cert = folder.path() / "cert.pem", .key = folder.path() / "key.pem"});
  if (!identity) throw std::runtime_error(identity.error().message);
  return *identity;
}

RunningOptions tls_options() {
  RunningOptions options = Running::defaults();
  options.server.tls = identity_named("first");
  options.server.max_handshakes = 4;
  return options;
}

std::string request_of(const std::string& method, const std::string& path, const std::string& body = {},
                       const std::string& fields = {}) {
  return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fields +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

class tls : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { running_ = std::make_unique<Running>(tls_options()); }
  static void TearDownTestSuite() { running_.reset(); }
  static uint16_t port() { return running_->port(); }

  static ClientReply ask_once(const std::string& method, const std::string& path, const std::string& body = {}) {
    TlsClient client(port());
    EXPECT_TRUE(client.is_open);
    client.send(request_of(method, path, body, "Connection: close\r\n"));
    const ClientReply reply = parse_reply(client.read_until(""));
    EXPECT_TRUE(client.was_told_the_end());
    return reply;
  }
  static bool is_alive() { return ask_once("GET", "/health").status == 200; }
  static bool has_connections(int32_t n) {
    for (int i = 0; i < 6000; ++i) {
      if (running_->server().n_connections() == n) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  static inline std::unique_ptr<Running> running_;
};

TEST_F(tls, a_reply_and_a_stream_say_the_same) {
  Json body = user_says("Tell me a story", 30);
  const ClientReply whole = ask_once("POST", "/v1/chat/completions", body.dump());
  ASSERT_EQ(whole.status, 200) << whole.body;
  body["stream"] = true;
  const ClientReply stream = ask_once("POST", "/v1/chat/completions", body.dump());
  std::string text;
  for (const Json& event : stream.events()) {
    if (!event["choices"].empty()) text += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(text, whole.json()["choices"][0]["message"]["content"]);
  EXPECT_NE(text, "");
}

TEST_F(tls, a_connection_is_kept_for_requests_one_after_the_other_and_behind_each_other) {
  TlsClient client(port());
  for (int i = 0; i < 3; ++i) {
    client.send(request_of("GET", "/health"));
    EXPECT_NE(client.read_until("\r\n\r\n").find("200 OK"), std::string::npos);
  }
  TlsClient pipelined(port());
  const std::string story = request_of("POST", "/v1/chat/completions", user_says("Tell me a story", 12).dump());
  pipelined.send(story + request_of("GET", "/ready") + request_of("GET", "/nothing", {}, "Connection: close\r\n"));
  const std::string replies = pipelined.read_until("");
  EXPECT_NE(replies.find("chat.completion"), std::string::npos);
  EXPECT_NE(replies.find("404 Not Found"), std::string::npos);
  EXPECT_LT(replies.find("chat.completion"), replies.find("404 Not Found"));
}

TEST_F(tls, large_bodies_come_whole_and_large_replies_go_out) {
  Json body = {{"content", repeated("fox ", 200'000)}};
  const ClientReply reply = ask_once("POST", "/tokenize", body.dump());
  ASSERT_EQ(reply.status, 200) << reply.body.substr(0, 300);
  EXPECT_GT(reply.json()["tokens"].size(), 100'000u);
}

TEST_F(tls, a_web_socket_works_in_it) {
  auto opened = std::make_unique<TlsClient>(port());
  TlsClient& client = *opened;
  client.send(request_of("GET", "/v1/stream", {},
                         "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                         "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
  EXPECT_NE(client.read_until("\r\n\r\n").find("101 "), std::string::npos);
  Json body = user_says("Tell me a story", 5);
  body["stream"] = true;
  const Json message = {{"id", "a"}, {"method", "chat.completions"}, {"body", body}};
  client.send(SocketClient::masked('\x81', message.dump()));
  EXPECT_NE(client.read_until("\"event\":\"done\"").find("\"event\":\"chunk\""), std::string::npos);
  client.send(std::string("\x88\x82\0\0\0\0\x03\xe8", 8));  // a close frame: 1000
  client.read_until("");
  EXPECT_TRUE(client.was_told_the_end());
  opened.reset();
  EXPECT_TRUE(has_connections(0));
}

TEST_F(tls, a_new_certificate_is_for_new_connections_and_old_ones_go_on) {
  TlsClient before(port());
  EXPECT_EQ(before.certificate_name(), "first");
  before.send(streaming_request(user_says("Tell me a story", 60)));
  const std::string end = "\r\n0\r\n\r\n";  // the last chunk, which may come behind [DONE]
  std::string stream = before.read_until("data: ");
  EXPECT_NE(stream.find("200 OK"), std::string::npos);
  running_->server().use(identity_named("second"));
  EXPECT_TRUE(is_alive());
  TlsClient after(port());
  EXPECT_EQ(after.certificate_name(), "second");
  if (!stream.ends_with(end)) stream += before.read_until(end);
  EXPECT_NE(stream.find("[DONE]"), std::string::npos);
  before.send(request_of("GET", "/health"));
  EXPECT_NE(before.read_until("\r\n\r\n").find("200 OK"), std::string::npos);
  running_->server().use(identity_named("first"));
}

TEST_F(tls, a_request_in_the_clear_is_told_so_and_closed) {
  for (const char* method : {"GET", "POST", "HEAD", "PUT"}) {
    RawClient client(port());
    client.send(request_of(method, "/v1/chat/completions"));
    const ClientReply reply = parse_reply(client.read_all());
    EXPECT_EQ(reply.status, 400) << method;
    EXPECT_NE(reply.body.find("https://"), std::string::npos) << reply.body;
  }
  EXPECT_TRUE(is_alive());
}

TEST_F(tls, bytes_that_are_nothing_are_closed_without_a_reply) {
  std::string record = std::string("\x16\x03\x01\x40\x00", 5) + std::string(0x4000, '\x01');
  for (const std::string& bytes : {std::string("\0\0\0\0\0\0\0\0", 8), std::string("OPTIONS * HTTP/1.1\r\n\r\n"),
                                   std::string(100'000, '\xff'), record, std::string("\x80\x2e\x01\x00\x02", 5)}) {
    RawClient client(port());
    client.send(bytes);
    client.half_close();
    EXPECT_EQ(client.read_all().find("HTTP/"), std::string::npos);
  }
  EXPECT_TRUE(is_alive());
}

TEST_F(tls, versions_without_trust_are_refused) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_security_level(context.get(), 0);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION);
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
  RawClient raw(port());
  SSL_set_fd(ssl.get(), raw.fd());
  EXPECT_NE(SSL_connect(ssl.get()), 1);
  EXPECT_EQ(TlsClient(port()).version(), "TLSv1.3");
}

TEST_F(tls, a_client_that_leaves_frees_its_work) {
  {
    TlsClient client(port());
    Json body = user_says("Tell me a story", 400);
    body["ignore_eos"] = true;
    client.send(streaming_request(body));
    EXPECT_NE(client.read_until("data: ").find("200 OK"), std::string::npos);
  }
  EXPECT_TRUE(running_->becomes_idle());
  {
    TlsClient client(port());
    Json body = user_says("Tell me a story", 400);
    body["ignore_eos"] = true;
    client.send(streaming_request(body));
    EXPECT_NE(client.read_until("data: ").find("200 OK"), std::string::npos);
    client.raw().reset();
  }
  EXPECT_TRUE(running_->becomes_idle());
  EXPECT_TRUE(has_connections(0));
}

TEST_F(tls, of_too_many_handshakes_the_oldest_gives_way) {
  std::deque<RawClient> stalled;
  for (int i = 0; i < 4; ++i) stalled.emplace_back(port());
  EXPECT_TRUE(has_connections(4));
  EXPECT_TRUE(is_alive());
  EXPECT_EQ(stalled.front().read_all(), "");
  for (int i = 0; i < 20; ++i) stalled.emplace_back(port());
  EXPECT_TRUE(is_alive());
  EXPECT_TRUE(has_connections(3));
  stalled.clear();
  EXPECT_TRUE(has_connections(0));
}

// By cause, as /metrics has them.
std::map<std::string, int> failed_handshakes(const std::string& page) {
  constexpr std::string_view kName = "\ncandor_tls_handshakes_failed_total{cause=\"";
  std::map<std::string, int> failed;
  for (size_t at = page.find(kName); at != std::string::npos; at = page.find(kName, at + 1)) {
    const size_t begin = at + kName.size();
    const size_t end = page.find('"', begin);
    failed[page.substr(begin, end - begin)] = std::stoi(page.substr(page.find(' ', end)));
  }
  return failed;
}

// Servers that soon lose patience.
class impatient_tls : public tls {
 protected:
  static void SetUpTestSuite() {
    RunningOptions options = tls_options();
    options.server.head_timeout = std::chrono::milliseconds(300);
    options.server.idle_timeout = std::chrono::milliseconds(600);
    running_ = std::make_unique<Running>(options);
  }
};

TEST_F(impatient_tls, a_handshake_that_stalls_ends) {
  RawClient silent(port());
  EXPECT_EQ(silent.read_all(), "");
  RawClient partly(port());
  partly.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9));
  EXPECT_EQ(partly.read_all().find("HTTP/"), std::string::npos);
  EXPECT_TRUE(has_connections(0));
}

TEST_F(impatient_tls, handshakes_that_fail_are_counted_by_cause) {
  auto expected = failed_handshakes(ask_once("GET", "/metrics").body);
  ASSERT_EQ(expected.size(), 4u);
  const auto counts = [&](const std::string& cause, const std::string& bytes, bool leaves) {
    {
      RawClient client(port());
      client.send(bytes);
      if (leaves) client.half_close();
      client.read_all();
    }
    ASSERT_TRUE(has_connections(0));
    ++expected[cause];
    EXPECT_EQ(failed_handshakes(ask_once("GET", "/metrics").body), expected) << cause;
  };
  const std::string begun("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9);
  counts("plain", request_of("GET", "/health"), false);
  counts("left", begun, true);
  counts("given_up", begun, false);
  counts("protocol", std::string(64, '\xff'), false);
}

TEST_F(impatient_tls, a_client_that_says_nothing_behind_the_handshake_is_told_goodbye) {
  TlsClient client(port());
  ASSERT_TRUE(client.is_open);
  EXPECT_EQ(client.read_until(""), "");
  EXPECT_TRUE(client.was_told_the_end());
}

TEST_F(impatient_tls, a_head_that_stops_gets_its_408) {
  TlsClient client(port());
  client.send("GET /health HTTP/1.1\r\nHost: ");
  EXPECT_NE(client.read_until("").find("408 "), std::string::npos);
  EXPECT_TRUE(client.was_told_the_end());
}

TEST_F(impatient_tls, draining_does_not_wait_for_handshakes) {
  RunningOptions options = tls_options();
  options.server.head_timeout = kPatience;
  Running running(options);
  RawClient stalled(running.port());
  while (running.server().n_connections() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_TRUE(running.server().drain(kPatience / 2));
}

}  // namespace
}  // namespace candor::testing
