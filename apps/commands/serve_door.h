#pragma once
// Who may come in to `candor serve`, and how: keys, hosts, origins and TLS, as its options say them. Read once before
// models are loaded, so that a mistake costs no time; the pair of TLS files again whenever the operator says so.

#include <memory>
#include <optional>

#include "apps/commands/serve_options.h"
#include "candor/result.h"
#include "obs/log.h"
#include "serve/http/access.h"
#include "serve/http/server.h"
#include "serve/http/tls_identity.h"

namespace candor::apps {

struct Door {
  http::AccessOptions access{};
  std::shared_ptr<http::TlsIdentity> identity{};  // none: without TLS
  std::optional<http::TlsFiles> tls{};            // where it is from
  obs::LogLevel level{};
  bool was_open = false;  // a server has listened
};

Result<Door> open_door(const ServeOptions& options);

// What the certificate is, and what is wrong with it, to the operator.
void announce(const http::TlsIdentity& identity, const obs::Log& log);

// The pair as it now is in its files. One that cannot be used leaves the old one in its place.
void reload_identity(http::Server& server, const http::TlsFiles& files, const obs::Log& log);

}  // namespace candor::apps
