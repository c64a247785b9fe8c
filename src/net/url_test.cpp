#include "net/url.h"

#include <gtest/gtest.h>

#include <string>

#include "net/proxies.h"

namespace candor::client {
namespace {

TEST(url, has_its_parts) {
  const auto url = parse_url("HTTPS://me:pw@Example.ORG:8443/a/b?c=d#e");
  ASSERT_TRUE(url) << url.error().message;
  EXPECT_EQ(url->scheme, "https");
  EXPECT_EQ(url->userinfo, "me:pw");
  EXPECT_EQ(url->host, "example.org");
  EXPECT_EQ(url->port, "8443");
  EXPECT_EQ(url->target, "/a/b?c=d");
  EXPECT_EQ(url->authority(false), "example.org:8443");
  EXPECT_EQ(parse_url("http://a?q")->target, "/?q");
  EXPECT_EQ(parse_url("http://a")->authority(false), "a");
  EXPECT_EQ(parse_url("https://[::1]:99/")->authority(true), "[::1]:99");
  EXPECT_EQ(parse_url("https://[::1]")->port, "443");
}

TEST(url, of_another_kind_or_shape_is_refused) {
  const std::string kBad[] = {"",
                              "example.org",
                              "file:///etc/passwd",
                              "ftp://a/",
                              "http://",
                              "http://:80",
                              "http://a:0/",
                              "http://a:65536/",
                              "http://a:8o/",
                              "http://[::1/",
                              "http://[]/",
                              "http://[::1]x/",
                              "http://a b/",
                              "http://a/\r\nX: y",
                              "http://a/\x7f",
                              "http://a/" + std::string(9000, 'b')};
  for (const std::string& text : kBad) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text.substr(0, 40);
    EXPECT_EQ(url.error().message.find('\n'), std::string::npos);
    EXPECT_LT(url.error().message.size(), 300u);
  }
}

// RFC 3986, 5.4, at "http://a/b/c/d?q".
TEST(url, is_resolved_at_another) {
  const Url base = *parse_url("http://a/b/c/d?q");
  const std::pair<const char*, const char*> kRows[] = {
      {"g", "/b/c/g"},      {"./g", "/b/c/g"},  {"g/", "/b/c/g/"},
      {"/g", "/g"},         {"?y", "/b/c/d?y"}, {"g?y", "/b/c/g?y"},
      {"..", "/b/"},        {"../g", "/b/g"},   {"../../g", "/g"},
      {"../../../g", "/g"}, {"", "/b/c/d?q"},   {".", "/b/c/"},
      {"g#s", "/b/c/g"},    {"/./g", "/g"},     {"g/../h", "/b/c/h"},
      {"http://a/x", "/x"}, {"//a/x", "/x"},    {"g?a=/../b", "/b/c/g?a=/../b"},
      {"x:y?z", nullptr}};
  for (const auto& [location, target] : kRows) {
    const auto url = resolve_url(base, location);
    if (target == nullptr) {
      EXPECT_FALSE(url) << location;
    } else {
      ASSERT_TRUE(url) << location << ": " << url.error().message;
      EXPECT_EQ(url->target, target) << location;
    }
  }
  EXPECT_EQ(resolve_url(base, "//other:81/x")->host, "other");
  EXPECT_FALSE(base.has_origin_of(*parse_url("https://a/")));
  EXPECT_FALSE(base.has_origin_of(*parse_url("http://a:81/")));
  EXPECT_TRUE(base.has_origin_of(*parse_url("http://A/z")));
}

// Variables and values in turn.
Environment with(std::vector<std::string> set) {
  return [set = std::move(set)](const char* name) -> const char* {
    for (size_t i = 0; i < set.size(); i += 2) {
      if (set[i] == name) return set[i + 1].c_str();
    }
    return nullptr;
  };
}
std::string chosen(const char* url, std::vector<std::string> set) {
  const auto proxy = proxy_for(*parse_url(url), with(std::move(set)));
  if (!proxy) return "refused: " + proxy.error().message;
  return *proxy ? (*proxy)->authority(true) : "none";
}

TEST(proxies, are_those_of_the_environment) {
  EXPECT_EQ(chosen("http://a/", {}), "none");
  EXPECT_EQ(chosen("http://a/", {"http_proxy", "http://p:1"}), "p:1");
  EXPECT_EQ(chosen("http://a/", {"HTTP_PROXY", "http://p:1"}), "none") << "a header of CGI could set it";
  EXPECT_EQ(chosen("https://a/", {"HTTPS_PROXY", "p:2"}), "p:2");
  EXPECT_EQ(chosen("https://a/", {"all_proxy", "http://p:3", "https_proxy", ""}), "p:3");
  EXPECT_EQ(chosen("http://a/", {"https_proxy", "p:2"}), "none");
  const std::string refusal = chosen("https://a/", {"https_proxy", "socks5://me:secret@p:1"});
  EXPECT_NE(refusal.find("expected http://HOST:PORT"), std::string::npos);
  EXPECT_EQ(refusal.find("secret"), std::string::npos);
}

TEST(proxies, leave_out_what_no_proxy_names) {
  const auto without = [](const char* url, const char* list) {
    return chosen(url, {"http_proxy", "p:1", "no_proxy", list});
  };
  EXPECT_EQ(without("http://a.example.org/", "x, example.org"), "none");
  EXPECT_EQ(without("http://a.example.org/", ".EXAMPLE.org"), "none");
  EXPECT_EQ(without("http://a.example.org/", "*.example.org"), "none");
  EXPECT_EQ(without("http://anexample.org/", "example.org"), "p:1");
  EXPECT_EQ(without("http://127.0.0.1:81/", "127.0.0.1"), "none");
  EXPECT_EQ(without("http://a:81/", "a:80"), "p:1");
  EXPECT_EQ(without("http://a:81/", "a:81,,"), "none");
  EXPECT_EQ(without("http://a/", "*"), "none");
  EXPECT_EQ(without("http://a/", ""), "p:1");
}

}  // namespace
}  // namespace candor::client
