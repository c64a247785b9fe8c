#pragma once
// A TLS client of 127.0.0.1 that trusts whatever certificate it is shown.

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <memory>
#include <string>

#include "serve/client.h"

namespace candor::testing {

class TlsClient {
 public:
  explicit TlsClient(uint16_t port)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), ssl_(SSL_new(context_.get()), SSL_free) {
    timeval patience{.tv_sec = kPatience.count(), .tv_usec = 0};
    ::setsockopt(raw_.fd(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL_set_fd(ssl_.get(), raw_.fd());
    is_open = SSL_connect(ssl_.get()) == 1;
  }

  bool send(std::string_view bytes) {
    return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size());
  }
  // Until `marker` was read or the other side closed: all that came since the last call.
  std::string read_until(std::string_view marker) {
    std::string read;
    while (marker.empty() || read.find(marker) == std::string::npos) {
      char buffer[16384];
      const int n = SSL_read(ssl_.get(), buffer, sizeof buffer);
      if (n <= 0) break;
      read.append(buffer, static_cast<size_t>(n));
    }
    return read;
  }
  // The other side said by TLS that nothing more comes: nobody cut the reply short.
  bool was_told_the_end() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  std::string certificate_name() const {
    const std::unique_ptr<X509, void (*)(X509*)> cert(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    char name[256] = {};
    if (cert) X509_NAME_get_text_by_NID(X509_get_subject_name(cert.get()), NID_commonName, name, sizeof name);
    return name;
  }
  std::string version() const { return SSL_get_version(ssl_.get()); }
  SSL* ssl() { return ssl_.get(); }
  RawClient& raw() { return raw_; }

  bool is_open = false;

 private:
  RawClient raw_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

}  // namespace candor::testing
