#pragma once
// One connection of the client to a host, plain or TLS, straight or through a proxy. The thread of its io_context.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "net/addresses.h"
#include "net/url.h"

namespace candor::client {

namespace asio = boost::asio;
namespace beast = boost::beast;

inline constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
inline constexpr std::chrono::seconds kConnectTime{20};  // name, connection and handshakes, each
inline constexpr std::chrono::seconds kSilence{60};      // without a byte a request counts as dead

// Of all connections; made when the first one needs it.
class Authorities {
 public:
  Result<asio::ssl::context*> context();

 private:
  std::unique_ptr<asio::ssl::context> context_;
};

struct Connection {
  // tls: nullptr for plain ones.
  Connection(asio::io_context& io, asio::ssl::context* tls) : plain(io) {
    if (tls != nullptr) secure.emplace(std::move(plain), *tls);
  }
  beast::tcp_stream& tcp() { return secure ? secure->next_layer() : plain; }

  beast::tcp_stream plain;
  std::optional<asio::ssl::stream<beast::tcp_stream>> secure;
  beast::flat_buffer buffer;
  bool is_used = false;  // an answer came over it
};

// "example.org:443: the certificate is not trusted (self-signed certificate)".
Error connection_error(const Url& url, const char* step, const boost::system::error_code& error);

// Connected, and beyond the handshake where url is https. may_reach: as of an HttpRequest.
asio::awaitable<Result<std::unique_ptr<Connection>>> connect(asio::io_context& io, Authorities& authorities,
                                                             const Url& url, const std::optional<Url>& proxy,
                                                             const AddressCheck& may_reach = {});

// "Basic ..." for a userinfo.
std::string basic_credentials(const std::string& userinfo);

}  // namespace candor::client
