#include "serve/http/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/sha256.h"
#include "base/utf8.h"
#include "serve/http/text.h"

namespace candor::http {
namespace {

constexpr size_t kMaxKeys = 1024;
constexpr size_t kMaxKeyFileBytes = 1u << 20;

bool is_name_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '_';
}

bool is_address_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == ':' || c == '.';
}

bool is_port(std::string_view text) {
  constexpr size_t kMostDigits = 5;
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

HttpResponse forbidden(std::string message) {
  return error_response({ErrorKind::kInvalidInput, std::move(message)}, {.status = 403, .type = "permission_error"});
}

bool changes_something(const HttpRequest& request) {
  return request.is_upgrade || (request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS");
}

}  // namespace

std::optional<std::string> host_name(std::string_view host) {
  std::string name = lower_case(host);
  const size_t bracket = name.find(']');
  const bool is_address = name.starts_with('[') && bracket != std::string::npos;
  const size_t end = is_address ? bracket + 1 : std::min(name.find(':'), name.size());
  if (end < name.size() && (name[end] != ':' || !is_port(std::string_view(name).substr(end + 1)))) return std::nullopt;
  name.resize(end);
  const std::string_view inner = is_address ? std::string_view(name).substr(1, end - 2) : std::string_view(name);
  const bool is_well_formed = !inner.empty() && std::ranges::all_of(inner, is_address ? is_address_char : is_name_char);
  return is_well_formed ? std::optional(std::move(name)) : std::nullopt;
}

Result<std::string> parse_origin(std::string_view text) {
  constexpr std::string_view kMark = "://";
  std::string origin = lower_case(text);
  const size_t at = origin.find(kMark);
  const std::string_view scheme = std::string_view(origin).substr(0, at == std::string::npos ? 0 : at);
  const bool has_scheme = !scheme.empty() && std::ranges::all_of(scheme, [](char c) { return c >= 'a' && c <= 'z'; });
  if (has_scheme && host_name(std::string_view(origin).substr(at + kMark.size()))) return origin;
  return fail(ErrorKind::kInvalidInput,
              fmt::format("\"{}\" is not one web page's origin, such as https://chat.example.com or "
                          "http://localhost:3000{}",
                          clipped(text),
                          text == "*" ? ": any page on the web could ask in its visitors' names; name those that may"
                                      : " (no path, no wildcard)"));
}

std::string fault_of_secret(std::string_view secret) {
  if (trimmed(secret).empty()) return "is blank";
  const bool is_visible = std::ranges::all_of(secret, [](char c) { return c > ' ' && c < '\x7f'; });
  return is_visible ? "" : "holds a space, a control character or what is not ASCII, which no client can send";
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

ApiKey make_key(std::string name, std::string_view secret) {
  ApiKey key{.name = std::move(name)};
  key.digest = sha256(secret);
  return key;
}

Result<std::vector<ApiKey>> read_key_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string content(kMaxKeyFileBytes + 1, '\0');
  if (file) file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad() || (!file && !file.eof()))
    return fail(ErrorKind::kIo, fmt::format("the key file {} cannot be read", path.string()));
  content.resize(static_cast<size_t>(file.gcount()));
  if (content.size() > kMaxKeyFileBytes)
    return fail(ErrorKind::kInvalidInput, fmt::format("the key file {} is larger than 1 MiB", path.string()));
  std::istringstream lines(content);
  std::vector<ApiKey> keys;
  std::string line;
  for (int n_line = 1; std::getline(lines, line); ++n_line) {
    while (!line.empty() && line.back() == '\r') line.pop_back();
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    if (keys.size() >= kMaxKeys) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("the key file {} has more than {} keys", path.string(), kMaxKeys));
    }
    const size_t space = text.find_first_of(" \t");
    const bool is_named = space != std::string_view::npos;
    const std::string_view secret = trimmed(is_named ? text.substr(space) : text);
    if (const std::string fault = fault_of_secret(secret); !fault.empty()) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("the key file {}, line {}: the key {}", path.string(), n_line, fault));
    }
    ApiKey key =
        make_key(is_named ? std::string(text.substr(0, space)) : fmt::format("key{}", keys.size() + 1), secret);
    if (std::ranges::find(keys, key.digest, &ApiKey::digest) != keys.end()) {
      return fail(ErrorKind::kInvalidInput,
                  fmt::format("the key file {}, line {}: this key is there already", path.string(), n_line));
    }
    keys.push_back(std::move(key));
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
  request.key = key_of(request);
  if (request.key >= 0) return std::nullopt;
  const bool has_none = request.header("authorization").empty() && request.header("x-api-key").empty();
  HttpResponse response = error_response(
      {ErrorKind::kInvalidInput, has_none ? "an API key is needed: Authorization: Bearer KEY, or x-api-key: KEY"
                                          : "the API key is not valid here"},
      {.status = 401, .type = "authentication_error", .code = "invalid_api_key"});
  response.headers.emplace_back("www-authenticate", "Bearer");
  return response;
}

Headers Access::cors_headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || std::ranges::find(options_.origins, origin) == options_.origins.end()) return {};
  return {{"access-control-allow-origin", std::string(origin)},
          {"access-control-allow-methods", "GET, POST, OPTIONS"},
          {"access-control-allow-headers", "authorization, content-type, x-api-key, x-request-id"},
          {"vary", "origin"}};
}

const std::string& Access::key_name(int32_t key) const {
  static const std::string kNone = "-";
  return key < 0 ? kNone : options_.keys[static_cast<size_t>(key)].name;
}

std::string Access::key_id(int32_t key) const {
  return key < 0 ? std::string() : to_hex(options_.keys[static_cast<size_t>(key)].digest);
}

int32_t Access::key_with_id(std::string_view id) const {
  for (size_t i = 0; i < n_keys(); ++i) {
    const auto key = static_cast<int32_t>(i);
    if (key_id(key) == id) return key;
  }
  return -1;
}

bool Access::knows_host(std::string_view host) const {
  if (options_.hosts.empty()) return true;
  const auto name = host_name(host);
  return name && std::ranges::find(options_.hosts, *name) != options_.hosts.end();
}

// Absent: not a web page. The server's own pages come from the name that it was asked under.
bool Access::knows_origin(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return true;
  if (std::ranges::find(options_.origins, origin) != options_.origins.end()) return true;
  return !options_.hosts.empty() && lower_case(origin) == options_.scheme + "://" + lower_case(request.header("host"));
}

// Clients that know both fields may fill one of them with a placeholder: either will do.
int32_t Access::key_of(const HttpRequest& request) const {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view field = request.header("authorization");
  const bool is_bearer = lower_case(field.substr(0, kScheme.size())) == kScheme;
  const int32_t by_bearer = find_key(is_bearer ? trimmed(field.substr(kScheme.size())) : std::string_view{});
  const int32_t by_field = find_key(trimmed(request.header("x-api-key")));
  return by_bearer >= 0 ? by_bearer : by_field;
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
