#pragma once
// The server's TLS certificate (with its chain) and the private key that belongs to it, both PEM, read whole and
// checked before any connection uses them. TLS 1.2 or 1.3, HTTP/1.1 by ALPN; sessions are resumed by tickets only, so
// that the server keeps nothing of them. Immutable: any thread.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace boost::asio::ssl {
class context;
}

namespace candor::http {

struct TlsFiles {
  std::filesystem::path cert;  // the server's certificate, then those that vouch for it
  std::filesystem::path key;   // without a passphrase
};

class TlsIdentity {
 public:
  // An error names the file and what to do.
  static Result<std::shared_ptr<TlsIdentity>> load(const TlsFiles& files);
  ~TlsIdentity();
  TlsIdentity(const TlsIdentity&) = delete;
  TlsIdentity& operator=(const TlsIdentity&) = delete;

  boost::asio::ssl::context& context() { return *context_; }
  // "certificate FILE, valid until 2027-01-31 12:00 UTC".
  const std::string& description() const { return description_; }
  // What clients will refuse it for: it has expired, or does not begin yet.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  TlsIdentity();
  Result<void> take_certificate(const TlsFiles& files);
  Result<void> take_key(const TlsFiles& files);
  void describe(const std::filesystem::path& cert);

  std::unique_ptr<boost::asio::ssl::context> context_;
  std::string description_;
  std::vector<std::string> warnings_;
};

}  // namespace candor::http
