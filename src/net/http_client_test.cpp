#include "net/http_client.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "support/certificate.h"
#include "support/scripted_server.h"
#include "support/temp_folder.h"

namespace candor::client {
namespace {

using candor::testing::Answer;
using candor::testing::ScriptedServer;
using candor::testing::TempFolder;
using candor::testing::with_body;

// "status body", or the error.
std::string ask(HttpClient& client, HttpRequest request) {
  std::string body;
  const auto status = client.fetch(std::move(request), [&body](int, std::string_view bytes) -> Result<void> {
    body += bytes;
    return {};
  });
  return status ? std::to_string(*status) + " " + body : status.error().message;
}

// A variable of the environment, until the end of a test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

// Without what the environment of the tests says.
class http_client : public ::testing::Test {
 protected:
  http_client() {
    for (const char* name : {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "SSL_CERT_FILE"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(http_client, reads_bodies_of_every_framing_over_one_connection) {
  ScriptedServer server({{with_body("200 OK", "length")},
                         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n3\r\nnks\r\n0\r\n\r\n"},
                         {"HTTP/1.1 100 Continue\r\n\r\n" + with_body("404 Not Found", "none")},
                         {"HTTP/1.1 200 OK\r\n\r\nto the end", true}});
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url("/a?b=c")}), "200 length");
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "200 chunks");
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "404 none");
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "200 to the end");
  EXPECT_EQ(server.n_connections, 1);
  EXPECT_TRUE(server.requests[0].starts_with("GET /a?b=c HTTP/1.1\r\n")) << server.requests[0];
  EXPECT_NE(server.requests[0].find("Host: " + server.authority()), std::string::npos);
}

TEST_F(http_client, a_kept_connection_that_was_closed_is_made_anew) {
  ScriptedServer server({{with_body("200 OK", "1"), true}, {with_body("200 OK", "2")}});
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "200 1");
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "200 2");
  EXPECT_EQ(server.n_connections, 2);
}

TEST_F(http_client, an_answer_that_breaks_off_is_an_error) {
  ScriptedServer server({{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour", true},
                         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nfew", true},
                         {"nonsense\r\n\r\n", true},
                         {"HTTP/1.1 200 OK\r\nX: " + std::string(70000, 'x') + "\r\n\r\n", true}});
  for (int i = 0; i < 4; ++i) {
    HttpClient client;
    const std::string reply = ask(client, {.url = server.url("/")});
    EXPECT_TRUE(reply.starts_with(server.authority())) << reply.substr(0, 200);
    EXPECT_EQ(reply.find('\n'), std::string::npos);
  }
}

TEST_F(http_client, follows_redirects_and_keeps_the_token_from_strangers) {
  ScriptedServer other({{with_body("200 OK", "there")}});
  ScriptedServer server({{"HTTP/1.1 302 Found\r\nLocation: ../b\r\nContent-Length: 0\r\n\r\n", true},
                         {"HTTP/1.1 307 Temporary Redirect\r\nLocation: " + other.url("/c") + "\r\n\r\n", true}});
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url("/x/a"), .token = "secret"}), "200 there");
  ASSERT_EQ(server.requests.size(), 2u);
  EXPECT_TRUE(server.requests[1].starts_with("GET /b ")) << server.requests[1];
  EXPECT_NE(server.requests[1].find("Authorization: Bearer secret"), std::string::npos);
  EXPECT_EQ(other.requests.at(0).find("secret"), std::string::npos) << other.requests[0];
}

TEST_F(http_client, redirects_without_end_or_to_other_schemes_are_refused) {
  std::deque<Answer> circle(9, {"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n", true});
  ScriptedServer server(circle);
  HttpClient client;
  EXPECT_NE(ask(client, {.url = server.url("/")}).find("more than 8 times"), std::string::npos);
  ScriptedServer file({{"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n", true}});
  EXPECT_NE(ask(client, {.url = file.url("/")}).find("expected http:// or https://"), std::string::npos);
}

TEST_F(http_client, sends_what_it_is_given) {
  ScriptedServer server({{with_body("200 OK", "ok")}});
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = server.url("/"), .method = "POST", .headers = {{"X-One", "1"}}, .body = "{}"}),
            "200 ok");
  EXPECT_TRUE(server.requests[0].starts_with("POST / "));
  EXPECT_NE(server.requests[0].find("X-One: 1\r\n"), std::string::npos);
  EXPECT_NE(server.requests[0].find("Content-Length: 2\r\n"), std::string::npos);
}

TEST_F(http_client, the_taker_and_the_caller_can_end_it) {
  ScriptedServer server({{with_body("200 OK", "body"), true}, {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody"}});
  HttpClient client;
  const auto refuse = [](int, std::string_view) -> Result<void> { return fail(ErrorKind::kInvalidInput, "too much"); };
  const auto refused = client.fetch({.url = server.url("/")}, refuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "too much");
  const auto take = [](int, std::string_view) -> Result<void> { return {}; };
  const auto stopped = client.fetch({.url = server.url("/")}, take, [] { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().kind, ErrorKind::kCancelled);
}

TEST_F(http_client, nobody_there_is_an_error_with_the_host) {
  HttpClient client;
  std::string url;
  { url = ScriptedServer({}).url("/"); }
  EXPECT_NE(ask(client, {.url = url}).find("no connection"), std::string::npos);
  EXPECT_NE(ask(client, {.url = "http://no-such-host.invalid/"}).find("its name is not known"), std::string::npos);
}

TEST_F(http_client, certificates_and_their_names_are_checked) {
  const TempFolder folder;
  candor::testing::write_certificate(folder.path());
  ScriptedServer server({{with_body("200 OK", "secret")}}, folder.path());
  {
    HttpClient client;
    EXPECT_NE(ask(client, {.url = server.url("/")}).find("its certificate is not trusted"), std::string::npos);
  }
  const Variable trusted("SSL_CERT_FILE", folder.path() / "cert.pem");
  HttpClient client;
  std::string by_number = server.url("/");
  by_number.replace(by_number.find("localhost"), 9, "127.0.0.1");
  EXPECT_NE(ask(client, {.url = by_number}).find("its certificate is not trusted"), std::string::npos);
  EXPECT_EQ(ask(client, {.url = server.url("/")}), "200 secret");
}

TEST_F(http_client, takes_the_proxy_of_the_environment) {
  ScriptedServer proxy(
      {{with_body("200 OK", "by proxy"), true}, {"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", true}});
  const Variable plain("http_proxy", "http://me:pw@" + proxy.authority());
  const Variable secure("https_proxy", "http://" + proxy.authority());
  HttpClient client;
  EXPECT_EQ(ask(client, {.url = "http://somewhere.invalid:81/x"}), "200 by proxy");
  EXPECT_TRUE(proxy.requests[0].starts_with("GET http://somewhere.invalid:81/x HTTP/1.1\r\n")) << proxy.requests[0];
  EXPECT_NE(proxy.requests[0].find("Proxy-Authorization: Basic bWU6cHc=\r\n"), std::string::npos);
  EXPECT_NE(ask(client, {.url = "https://somewhere.invalid/"}).find("refuses a way to somewhere.invalid:443"),
            std::string::npos);
  EXPECT_TRUE(proxy.requests[1].starts_with("CONNECT somewhere.invalid:443 HTTP/1.1\r\n")) << proxy.requests[1];
}

}  // namespace
}  // namespace candor::client
