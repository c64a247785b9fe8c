#include "serve/http/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "serve/http/text.h"

namespace candor::http {
namespace {

constexpr size_t kMaxKeys = 1024;

// "127.0.0.1:8080" and "[::1]:8080" without their ports.
std::string_view host_name(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

HttpResponse forbidden(std::string message) {
  return error_response({.status = 403, .message = std::move(message), .type = "permission_error"});
}

bool changes_something(const HttpRequest& request) {
  return request.is_upgrade || (request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS");
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

ApiKey make_key(std::string name, std::string_view secret) {
  ApiKey key{.name = std::move(name)};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), key.digest.data());
  return key;
}

Expected<std::vector<ApiKey>> read_key_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) return fail(ErrorKind::kIo, fmt::format("the key file {} cannot be read", path.string()));
  std::vector<ApiKey> keys;
  std::string line;
  while (std::getline(file, line)) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    if (keys.size() >= kMaxKeys) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("the key file {} has more than {} keys", path.string(), kMaxKeys));
    }
    const size_t space = text.find_first_of(" \t");
    const bool is_named = space != std::string_view::npos;
    keys.push_back(make_key(is_named ? std::string(text.substr(0, space)) : fmt::format("key{}", keys.size() + 1),
                            trimmed(is_named ? text.substr(space) : text)));
  }
  if (!keys.empty()) return keys;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("the key file {} holds no key, expected lines of NAME SECRET", path.string()));
}

std::optional<HttpResponse> Access::refuse(HttpRequest& request, bool needs_key) const {
  if (!knows_host(request.header("host"))) {
    return forbidden("the name in the Host field is not one of this server's; --allow-host adds names");
  }
  if (changes_something(request) && !knows_origin(request)) {
    return forbidden("pages of this origin may not ask this server; --allow-origin adds origins");
  }
  if (!needs_key || !has_keys() || request.method == "OPTIONS") return std::nullopt;
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view field = request.header("authorization");
  const bool is_bearer = lower_case(field.substr(0, kScheme.size())) == kScheme;
  request.key = find_key(is_bearer ? trimmed(field.substr(kScheme.size())) : std::string_view{});
  if (request.key >= 0) return std::nullopt;
  HttpResponse response = error_response(
      {.status = 401,
       .message = field.empty() ? "an API key is needed: Authorization: Bearer KEY" : "the API key is not valid here",
       .type = "authentication_error",
       .code = "invalid_api_key"});
  response.headers.emplace_back("www-authenticate", "Bearer");
  return response;
}

Headers Access::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || std::ranges::find(options_.origins, origin) == options_.origins.end()) return {};
  return {{"access-control-allow-origin", std::string(origin)},
          {"access-control-allow-methods", "GET, POST, OPTIONS"},
          {"access-control-allow-headers", "authorization, content-type, x-request-id"},
          {"vary", "origin"}};
}

const std::string& Access::key_name(int32_t key) const {
  static const std::string kNone = "-";
  return key < 0 ? kNone : options_.keys[static_cast<size_t>(key)].name;
}

bool Access::knows_host(std::string_view host) const {
  if (options_.hosts.empty()) return true;
  return std::ranges::find(options_.hosts, lower_case(host_name(host))) != options_.hosts.end();
}

// Absent: not a web page. The server's own pages come from the name that it was asked under.
bool Access::knows_origin(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return true;
  if (std::ranges::find(options_.origins, origin) != options_.origins.end()) return true;
  return !options_.hosts.empty() && lower_case(origin) == "http://" + lower_case(request.header("host"));
}

// Looks at every key, whatever it finds.
int32_t Access::find_key(std::string_view secret) const {
  const Digest digest = make_key({}, secret).digest;
  int32_t found = -1;
  for (size_t i = 0; i < options_.keys.size(); ++i) {
    const bool is_equal = CRYPTO_memcmp(digest.data(), options_.keys[i].digest.data(), digest.size()) == 0;
    found = is_equal ? static_cast<int32_t>(i) : found;
  }
  return secret.empty() ? -1 : found;
}

}  // namespace candor::http
