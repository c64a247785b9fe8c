#pragma once
// Addresses of http and https (RFC 3986), as a client needs them. Plain values.

#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::client {

struct Url {
  std::string scheme;    // "http" or "https"
  std::string userinfo;  // "name:password", as written; "" = none
  std::string host;      // in lower case, without the brackets of IPv6
  std::string port;      // "80" or "443" where none is written
  std::string target;    // path and query, at least "/"; no fragment

  bool is_secure() const { return scheme == "https"; }
  // For Host and CONNECT: brackets around IPv6; the port where it is not the scheme's, or always.
  std::string authority(bool with_port) const;
  // Who answers: credentials for one origin are not sent to another.
  bool has_origin_of(const Url& other) const;
};

// Refuses other schemes, ports that are none, spaces and control characters.
Result<Url> parse_url(std::string_view text);

// What a redirect to `location` means, seen at `base`: absolute, "//host/path", "/path", "?query", or relative.
Result<Url> resolve_url(const Url& base, std::string_view location);

}  // namespace candor::client
