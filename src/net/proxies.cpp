#include "net/proxies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>

namespace candor::client {
namespace {

std::string first_set(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = environment(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

// An entry of no_proxy: "*", a host, or a domain with all below it; a port narrows it.
bool is_excepted(const Url& url, std::string_view entry) {
  if (entry == "*") return true;
  std::string name(entry);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && name.find(':') == colon) {
    if (name.substr(colon + 1) != url.port) return false;
    name.resize(colon);
  }
  if (name.starts_with("*.")) name.erase(0, 1);
  if (name.starts_with('.')) name.erase(0, 1);
  if (name.empty()) return false;
  return url.host == name || url.host.ends_with("." + name);
}

bool is_excepted_by(const Url& url, std::string_view list) {
  while (!list.empty()) {
    const size_t end = std::min(list.find_first_of(", "), list.size());
    if (is_excepted(url, list.substr(0, end))) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace

Result<std::optional<Url>> proxy_for(const Url& url, const Environment& environment) {
  std::string proxy = url.is_secure() ? first_set(environment, {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"})
                                      : first_set(environment, {"http_proxy", "all_proxy", "ALL_PROXY"});
  if (proxy.empty()) return std::optional<Url>();
  if (is_excepted_by(url, first_set(environment, {"no_proxy", "NO_PROXY"}))) return std::optional<Url>();
  if (proxy.find("://") == std::string::npos) proxy.insert(0, "http://");
  auto parsed = parse_url(proxy);
  if (!parsed || parsed->is_secure()) {
    // The address may hold a password: it is not shown.
    return fail(ErrorKind::kUnsupported,
                fmt::format("the proxy that {}_proxy names is not supported: expected http://HOST:PORT", url.scheme));
  }
  return std::optional<Url>(std::move(*parsed));
}

}  // namespace candor::client
