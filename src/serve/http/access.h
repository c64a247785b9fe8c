#pragma once
// Decides which requests are allowed, by API key (Authorization: Bearer KEY, as OpenAI's clients send it, or x-api-key:
// KEY, as Anthropic's do), by the server name that the client used (against DNS rebinding) and by the web page's
// Origin. Keys are kept and compared as SHA-256 digests, in constant time. Immutable: any thread.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "serve/http/message.h"

namespace candor::http {

using Digest = std::array<uint8_t, 32>;

struct ApiKey {
  std::string name;
  Digest digest{};
};

ApiKey make_key(std::string name, std::string_view secret);
// Why no client could ever show it: it is blank, or holds what a header field cannot carry. "" if one can.
std::string fault_of_secret(std::string_view secret);
// One key a line: NAME SECRET, or SECRET alone; '#' begins a comment.
Result<std::vector<ApiKey>> read_key_file(const std::filesystem::path& path);

struct AccessOptions {
  std::vector<ApiKey> keys{};          // none: no key is asked for
  std::vector<std::string> hosts{};    // names in Host, in lower case and without port; empty: any
  std::vector<std::string> origins{};  // "https://chat.example.com": may ask, and get CORS headers
  std::string scheme = "http";         // by which the server itself is asked: that of its own pages
};

class Access {
 public:
  explicit Access(AccessOptions options) : options_(std::move(options)) {}

  // The reply for a request that may not go on. Sets request.key.
  std::optional<HttpResponse> refuse(HttpRequest& request, bool needs_key) const;
  // What lets a page of an allowed origin read the reply.
  Headers cors_headers(const HttpRequest& request) const;
  bool has_keys() const { return !options_.keys.empty(); }
  size_t n_keys() const { return options_.keys.size(); }
  // "-" for no key.
  const std::string& key_name(int32_t key) const;
  // The key's digest as text, for what outlives the server; empty for no key.
  std::string key_id(int32_t key) const;
  // -1 where no key has it.
  int32_t key_with_id(std::string_view id) const;

 private:
  bool knows_host(std::string_view host) const;
  bool knows_origin(const HttpRequest& request) const;
  int32_t find_key(std::string_view secret) const;
  int32_t key_of(const HttpRequest& request) const;

  AccessOptions options_;
};

// The name of "NAME" or "NAME:PORT" in lower case; nothing where it is anything else: a name of letters, digits, '.',
// '-' and '_', or an IPv6 address in brackets.
std::optional<std::string> host_name(std::string_view host);
// As Origin shows it: SCHEME://NAME or SCHEME://NAME:PORT in lower case. "*", paths and the like are refused.
Result<std::string> parse_origin(std::string_view text);

// Addresses that only this machine can reach.
bool is_loopback(std::string_view host);

}  // namespace candor::http
