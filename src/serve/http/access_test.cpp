#include "serve/http/access.h"

#include <gtest/gtest.h>

namespace candor::http {
namespace {

TEST(access, a_host_is_a_name_and_a_port_or_it_is_none) {
  EXPECT_EQ(host_name("localhost"), "localhost");
  EXPECT_EQ(host_name("LocalHost:8080"), "localhost");
  EXPECT_EQ(host_name("127.0.0.1:1"), "127.0.0.1");
  EXPECT_EQ(host_name("[::1]:8080"), "[::1]");
  EXPECT_EQ(host_name("[FE80::1]"), "[fe80::1]");
  for (const char* host :
       {"", ":80", "[::1].evil.com", "[::1]evil.com", "[::1", "::1", "[]", "[::1%eth0]", "[::1%25eth0]", "[::1]:",
        "localhost:", "localhost:80:80", "localhost:8080x", "localhost:123456", "localhost:-1", "user@localhost",
        "localhost@evil.com", "localhost/", "local host", "localhost,evil.com", "localhost\t", "lo\xC3\xA9", "[::1]]",
        "[[::1]]"}) {
    EXPECT_EQ(host_name(host), std::nullopt) << host;
  }
}

TEST(access, only_the_very_names_of_the_server_are_known) {
  AccessOptions options;
  options.hosts = {"localhost", "127.0.0.1", "[::1]"};
  const Access access(options);
  const auto is_known = [&access](const std::string& host) {
    HttpRequest request;
    request.method = "GET";
    request.headers = {{"host", host}};
    return !access.refuse(request, false);
  };
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]", "[::1]:9"})
    EXPECT_TRUE(is_known(host)) << host;
  for (const char* host : {"[::1].evil.com", "localhost.", "localhost.evil.com", "evil.com", "127.0.0.1.evil.com",
                           "evil.com@localhost", "[::1]:80.evil.com", "", "*"})
    EXPECT_FALSE(is_known(host)) << host;
}

TEST(access, a_key_comes_in_either_field) {
  AccessOptions options;
  options.keys = {make_key("alice", "one"), make_key("bob", "two")};
  const Access access(options);
  const auto key_of = [&access](Headers headers) {
    HttpRequest request;
    request.method = "POST";
    request.headers = std::move(headers);
    const auto refusal = access.refuse(request, true);
    EXPECT_EQ(refusal.has_value(), request.key < 0);
    EXPECT_EQ(refusal ? refusal->status : 401, 401);
    return request.key;
  };
  EXPECT_EQ(key_of({{"authorization", "Bearer one"}}), 0);
  EXPECT_EQ(key_of({{"x-api-key", "two"}}), 1);
  EXPECT_EQ(key_of({{"authorization", "Bearer placeholder"}, {"x-api-key", "two"}}), 1);
  EXPECT_EQ(key_of({{"authorization", "Bearer one"}, {"x-api-key", "placeholder"}}), 0);
  EXPECT_EQ(key_of({{"authorization", "Bearer one"}, {"x-api-key", "two"}}), 0);
  for (const Headers& headers : {Headers{}, {{"authorization", "one"}}, {{"authorization", "Basic one"}},
                                 {{"x-api-key", "Bearer one"}}, {{"x-api-key", ""}}, {{"x-api-key", "three"}},
                                 {{"api-key", "one"}}})
    EXPECT_EQ(key_of(headers), -1);
}

TEST(access, pages_of_the_server_itself_come_by_its_own_scheme) {
  AccessOptions options;
  options.hosts = {"localhost"};
  options.scheme = "https";
  const Access access(options);
  const auto is_refused = [&access](const std::string& origin) {
    HttpRequest request;
    request.method = "POST";
    request.headers = {{"host", "localhost:8080"}, {"origin", origin}};
    return access.refuse(request, false).has_value();
  };
  EXPECT_FALSE(is_refused("https://localhost:8080"));
  EXPECT_TRUE(is_refused("http://localhost:8080"));
}

TEST(access, an_origin_is_a_scheme_and_a_host) {
  EXPECT_EQ(*parse_origin("https://Chat.Example.com"), "https://chat.example.com");
  EXPECT_EQ(*parse_origin("http://localhost:3000"), "http://localhost:3000");
  for (const char* origin : {"*", "null", "", "https://", "https://a/", "https://*.a", "a.com", "://a", "https://a:"})
    EXPECT_FALSE(parse_origin(origin)) << origin;
}

}  // namespace
}  // namespace candor::http
