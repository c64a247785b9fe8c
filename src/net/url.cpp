#include "net/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace candor::client {
namespace {

constexpr size_t kMaxUrlBytes = 8192;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lowered(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

Error bad(std::string_view text, const char* reason) {
  std::string shown(text.substr(0, 200));
  std::ranges::replace_if(
      shown, [](char c) { return c < 0x20 || c == 0x7f; }, '?');
  return fail(ErrorKind::kInvalidInput, fmt::format("'{}': {}", shown, reason));
}

bool is_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

// "host", "host:port", "[::1]:port".
Result<void> read_host(std::string_view text, std::string_view whole, Url& url) {
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos) return bad(whole, "expected a ']' behind the address");
    url.host = lowered(text.substr(1, end - 1));
    port = text.substr(end + 1);
    if (!port.empty() && port[0] != ':') return bad(whole, "expected ':' and a port behind ']'");
  } else {
    const size_t colon = text.find(':');
    url.host = lowered(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon);
  }
  if (!port.empty()) port.remove_prefix(1);
  if (url.host.empty()) return bad(whole, "names no host");
  if (!port.empty() && !is_port(port)) return bad(whole, "the port is no number from 1 to 65535");
  url.port = port.empty() ? (url.is_secure() ? "443" : "80") : std::string(port);
  return {};
}

// "/a/./b/../c" -> "/a/c" (RFC 3986, 5.2.4).
std::string without_dots(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/', 1), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(end);
    if (part == "/..") {
      out.resize(out.empty() ? 0 : out.rfind('/'));
    } else if (part != "/.") {
      out += part;
      continue;
    }
    if (path.empty()) out += '/';
  }
  return out;
}

}  // namespace

std::string Url::authority(bool with_port) const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  const bool is_usual = port == (is_secure() ? "443" : "80");
  return with_port || !is_usual ? name + ":" + port : name;
}

bool Url::has_origin_of(const Url& other) const {
  return scheme == other.scheme && host == other.host && port == other.port;
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrlBytes) return bad(text, "is longer than 8192 bytes");
  if (std::ranges::any_of(text, [](unsigned char c) { return c <= 0x20 || c == 0x7f; })) {
    return bad(text, "holds a space or a control character");
  }
  const size_t colon = text.find("://");
  Url url;
  url.scheme = colon == std::string_view::npos ? "" : lowered(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") return bad(text, "expected http:// or https://");
  std::string_view rest = text.substr(colon + 3);
  rest = rest.substr(0, rest.find('#'));
  const size_t path = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view host = rest.substr(0, path);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    url.userinfo = host.substr(0, at);
    host.remove_prefix(at + 1);
  }
  CANDOR_TRY(read_host(host, text, url));
  url.target = rest.substr(path);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  return url;
}

Result<Url> resolve_url(const Url& base, std::string_view location) {
  location = location.substr(0, location.find('#'));
  const size_t colon = location.find(':');
  if (colon != std::string_view::npos && colon < location.find_first_of("/?")) return parse_url(location);
  if (location.starts_with("//")) return parse_url(fmt::format("{}:{}", base.scheme, location));
  const std::string_view old_path = std::string_view(base.target).substr(0, base.target.find('?'));
  std::string target;
  if (location.empty()) {
    target = base.target;
  } else if (location.starts_with('/')) {
    target = location;
  } else if (location.starts_with('?')) {
    target = fmt::format("{}{}", old_path, location);
  } else {
    target = fmt::format("{}{}", old_path.substr(0, old_path.rfind('/') + 1), location);
  }
  const size_t query = std::min(target.find('?'), target.size());
  target = without_dots(std::string_view(target).substr(0, query)) + target.substr(query);
  return parse_url(fmt::format("{}://{}{}", base.scheme, base.authority(true), target));
}

}  // namespace candor::client
