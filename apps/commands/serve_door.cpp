#include "apps/commands/serve_door.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "apps/terminal/terminal.h"
#include "base/error.h"
#include "base/utf8.h"

namespace candor::apps {
namespace {

Error refused(const std::string& message) {
  return fail(ErrorKind::kInvalidInput, "serve: " + message);
}

Result<void> read_origins(const ServeOptions& options, http::AccessOptions& access) {
  for (const std::string& text : options.origins) {
    auto origin = http::parse_origin(text);
    if (!origin) return refused("--allow-origin: " + origin.error().message);
    access.origins.push_back(std::move(*origin));
  }
  return {};
}

// Without hosts: any name.
Result<void> read_hosts(const ServeOptions& options, bool is_local, http::AccessOptions& access) {
  if (!is_local && options.hosts.empty()) return {};
  access.hosts = {"localhost", "127.0.0.1", "[::1]", options.host};
  for (const std::string& text : options.hosts) {
    const auto name = http::host_name(text);
    if (!name || name->size() != text.size())
      return refused(fmt::format("--allow-host \"{}\" is not a name alone, such as chat.example.com", clipped(text)));
    access.hosts.push_back(*name);
  }
  return {};
}

// Keys from the options and the file; a public address without any is refused.
Result<http::AccessOptions> read_access(const ServeOptions& options) {
  http::AccessOptions access;
  for (const std::string& key : options.keys) {
    if (const std::string fault = http::fault_of_secret(key); !fault.empty()) return refused("--api-key " + fault);
    access.keys.push_back(http::make_key(fmt::format("key{}", access.keys.size() + 1), key));
  }
  if (options.key_file) {
    CANDOR_ASSIGN(auto keys, http::read_key_file(*options.key_file));
    std::ranges::move(keys, std::back_inserter(access.keys));
  }
  const bool is_local = http::is_loopback(options.host);
  if (!is_local && access.keys.empty()) {
    return refused(
        fmt::format("--host {} lets others in, and there is no key: add --api-key-file FILE (lines of NAME SECRET), or "
                    "stay on 127.0.0.1",
                    options.host));
  }
  access.scheme = options.tls_cert ? "https" : "http";
  CANDOR_TRY(read_origins(options, access));
  CANDOR_TRY(read_hosts(options, is_local, access));
  return access;
}

Result<std::shared_ptr<http::TlsIdentity>> read_identity(const http::TlsFiles& files) {
  auto identity = http::TlsIdentity::load(files);
  if (!identity) return refused(identity.error().message);
  catch_hang_ups();
  return identity;
}

}  // namespace

Result<Door> open_door(const ServeOptions& options) {
  Door door;
  CANDOR_ASSIGN(door.level, obs::parse_log_level(options.log_level));
  CANDOR_ASSIGN(door.access, read_access(options));
  if (options.tls_cert.has_value() != options.tls_key.has_value()) {
    return refused(options.tls_cert ? "--tls-cert comes with --tls-key FILE, the private key that belongs to it"
                                    : "--tls-key comes with --tls-cert FILE, the certificate that it belongs to");
  }
  if (options.tls_cert) {
    door.tls = {.cert = *options.tls_cert, .key = *options.tls_key};
    CANDOR_ASSIGN(door.identity, read_identity(*door.tls));
  }
  const int64_t body_mb = options.body_mb.value_or(16);
  if (options.inflight_mb && *options.inflight_mb < body_mb) {
    return refused(
        fmt::format("--max-inflight-mb {} holds no body of --max-body-mb {}; more of the one, or less of the "
                    "other",
                    *options.inflight_mb, body_mb));
  }
  return door;
}

void announce(const http::TlsIdentity& identity, const obs::Log& log) {
  log.info("TLS: " + identity.description());
  for (const std::string& warning : identity.warnings()) log.warning("TLS: " + warning);
}

void reload_identity(http::Server& server, const http::TlsFiles& files, const obs::Log& log) {
  auto identity = http::TlsIdentity::load(files);
  if (!identity)
    return log.error("TLS: the pair in use stays, the new one cannot be used: " + identity.error().message);
  announce(**identity, log);
  server.use(std::move(*identity));
}

}  // namespace candor::apps
