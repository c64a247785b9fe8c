#include "net/public_files.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "support/scripted_server.h"

namespace candor::client {
namespace {

using candor::testing::Answer;
using candor::testing::ScriptedServer;
using candor::testing::with_body;

// Everything may be reached, to test the other rules with a server of this machine.
PublicFileRules open_rules() {
  return {.may_reach = [](std::span<const uint8_t>) { return true; }};
}

std::string fetched(const std::string& url, PublicFileRules rules = open_rules()) {
  const auto file = PublicFiles(std::make_shared<PublicFileDoor>(std::move(rules))).fetch(url);
  return file ? *file : "refused: " + file.error().message;
}

Answer image(const std::string& bytes, const std::string& type = "image/png") {
  return {with_body("200 OK", bytes, "Content-Type: " + type + "\r\n")};
}

std::string redirect(const std::string& to) {
  return with_body("302 Found", "", "Location: " + to + "\r\n");
}

TEST(public_files, are_fetched_whole) {
  ScriptedServer server({image("a file"), image("another", "IMAGE/webp; q=1")});
  EXPECT_EQ(fetched(server.url("/a.png")), "a file");
  EXPECT_NE(server.requests.at(0).find("GET /a.png HTTP/1.1"), std::string::npos);
}

TEST(public_files, of_this_machine_and_its_networks_are_refused_without_a_connection) {
  ScriptedServer server({image("secret")});
  const std::string port = server.authority().substr(server.authority().find(':'));
  for (const std::string host : {"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "127.1",
                                 "2130706433", "0x7f000001", "10.0.0.1", "169.254.169.254"}) {
    const std::string said = fetched("http://" + host + port + "/x", {});
    EXPECT_TRUE(said.starts_with("refused: ")) << host << ": " << said;
    if (host[0] == '[') continue;  // of a machine without IPv6 already the name is not known
    EXPECT_NE(said.find("not one of the public internet"), std::string::npos) << host << ": " << said;
  }
  EXPECT_EQ(server.n_connections, 0);
}

// What may be reached is asked again behind each redirect.
TEST(public_files, behind_a_redirect_are_checked_again) {
  ScriptedServer inside({image("secret")});
  ScriptedServer outside({{redirect(inside.url("/x"))}});
  PublicFileRules rules;
  int n_asked = 0;
  rules.may_reach = [&n_asked](std::span<const uint8_t>) { return n_asked++ == 0; };
  EXPECT_NE(fetched(outside.url("/x"), rules).find("not one of the public internet"), std::string::npos);
  EXPECT_EQ(n_asked, 2);
  EXPECT_EQ(inside.n_connections, 0);
}

TEST(public_files, behind_three_redirects_are_found_and_behind_four_not) {
  for (const int n : {3, 4}) {
    std::deque<Answer> answers;
    for (int i = 0; i < n; ++i) answers.push_back({redirect("/" + std::to_string(i))});
    answers.push_back(image("found"));
    ScriptedServer server(answers);
    const std::string said = fetched(server.url("/"));
    EXPECT_NE(said.find(n == 3 ? "found" : "redirects more than 3 times"), std::string::npos) << said;
  }
}

TEST(public_files, to_which_a_redirect_names_another_scheme_are_refused) {
  for (const std::string to : {"file:///etc/passwd", "ftp://example.org/x", "gopher://127.0.0.1/"}) {
    ScriptedServer server({{redirect(to)}});
    EXPECT_NE(fetched(server.url("/")).find("expected http:// or https://"), std::string::npos) << to;
  }
}

TEST(public_files, of_another_type_or_status_are_refused) {
  ScriptedServer html({image("<html>", "text/html")});
  EXPECT_NE(fetched(html.url("/")).find("is of type \"text/html\", expected image/"), std::string::npos);
  ScriptedServer none({{with_body("200 OK", "x")}});
  EXPECT_NE(fetched(none.url("/")).find("is of type \"\""), std::string::npos);
  ScriptedServer missing({{with_body("404 Not Found", "x", "Content-Type: image/png\r\n")}});
  EXPECT_NE(fetched(missing.url("/")).find("status 404"), std::string::npos);
}

TEST(public_files, of_one_request_share_their_bytes) {
  ScriptedServer server({image(std::string(600, 'a')), image(std::string(600, 'b')), image(std::string(400, 'c'))});
  PublicFileRules rules = open_rules();
  rules.most_bytes = 1000;
  PublicFiles files(std::make_shared<PublicFileDoor>(rules));
  EXPECT_TRUE(files.fetch(server.url("/")));
  const auto second = files.fetch(server.url("/"));
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("more than 1000 bytes"), std::string::npos) << second.error().message;
  EXPECT_TRUE(files.fetch(server.url("/")));
}

// The server says a part, and then nothing.
TEST(public_files, that_do_not_come_in_time_are_given_up) {
  PublicFileRules rules = open_rules();
  rules.at_most = std::chrono::milliseconds(200);
  ScriptedServer silent({{"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 5\r\n\r\nab"}, {}});
  EXPECT_NE(fetched(silent.url("/"), rules).find("not there within 0.2 s"), std::string::npos);
}

TEST(public_files, are_fetched_by_a_few_at_once) {
  PublicFileRules rules = open_rules();
  rules.n_at_once = 0;
  const auto file = PublicFiles(std::make_shared<PublicFileDoor>(rules)).fetch("http://127.0.0.1:1/");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kBusy);
}

TEST(public_files, that_are_no_addresses_are_refused_in_one_line) {
  for (const std::string url : {"", "http://", "http:///x", "ftp://example.org/", "http://a b/", "http://[::1/", "x\ny",
                                "http://example.org:0/", "http://example.org:99999/"}) {
    const std::string said = fetched(url, {});
    EXPECT_TRUE(said.starts_with("refused: ")) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace candor::client
