// How a connection by TLS begins, before its first request.

#include <coroutine>
#include <string>

#include <openssl/err.h>
#include <openssl/sslerr.h>

#include <boost/asio/ssl/error.hpp>
#include <boost/asio/write.hpp>

#include "serve/http/message.h"
#include "serve/http/server.h"
#include "serve/http/session.h"

namespace candor::http {
namespace {

// OpenSSL tells a request in the clear from bytes that are nothing.
bool is_plain_request(const boost::system::error_code& error) {
  return error.category() == net::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
}

HandshakeFailure failure_of(const boost::system::error_code& error) {
  if (is_plain_request(error)) return HandshakeFailure::kPlain;
  if (error == net::error::operation_aborted || error == net::error::bad_descriptor) return HandshakeFailure::kGivenUp;
  const bool has_left = error == net::error::eof || error == net::error::connection_reset ||
                        error == net::error::broken_pipe || error == net::ssl::error::stream_truncated;
  return has_left ? HandshakeFailure::kLeft : HandshakeFailure::kProtocol;
}

}  // namespace

// True where requests may follow. Who is in a handshake holds memory and no key has been asked for: of too many the
// oldest is dropped, so that clients which never go on do not keep those away that do.
net::awaitable<bool> Session::shake_hands() {
  if (!network_.tls) co_return true;
  if (network_.handshakes.size() >= network_.options.max_handshakes) {
    if (const auto it = network_.sessions.find(*network_.handshakes.begin()); it != network_.sessions.end())
      it->second->abort();
    network_.handshakes.erase(network_.handshakes.begin());
  }
  network_.handshakes.insert(id_);
  link_.wire().begin_tls(*network_.tls);
  reader_.set_idle();
  link_.set_deadline(network_.options.head_timeout);
  const auto [error] = co_await link_.wire().async_handshake(kTuple);
  link_.clear_deadline();
  network_.handshakes.erase(id_);
  if (!error) link_.mark_secured();
  if (error && !network_.is_draining) network_.handler.on_handshake_failed(failure_of(error));
  if (error && is_plain_request(error) && link_.wire().is_open()) co_await answer_in_the_clear();
  co_return !error;
}

net::awaitable<void> Session::answer_in_the_clear() {
  HttpRequest nothing;
  keep_alive_ = false;
  link_.begin_lingering();
  const HttpResponse response = error_response(
      {ErrorKind::kInvalidInput, "this port speaks TLS: ask it as https://, or by wss:// for a WebSocket"});
  const std::string bytes = head_of(response, false, nothing) + response.body;
  link_.set_deadline(network_.options.write_timeout);
  co_await net::async_write(link_.wire().tcp(), net::buffer(bytes), kTuple);
  link_.clear_deadline();
}

}  // namespace candor::http
