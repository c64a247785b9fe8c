#pragma once
// Reads and writes the messages of one WebSocket (RFC 6455), after its session has read the upgrade request. Network
// thread only.

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <memory>
#include <utility>

#include "serve/http/session.h"
#include "serve/http/web_socket.h"

namespace candor::http {

class WebSocketSession {
 public:
  // Borrows the session, whose socket it takes.
  WebSocketSession(Session& session, std::shared_ptr<WebSocket> socket)
      : session_(session), socket_(std::move(socket)) {}

  // Until either side closes.
  net::awaitable<void> run(const boost::beast::http::request<boost::beast::http::string_body>& upgrade);

 private:
  struct Stream;

  static net::awaitable<void> read_messages(Session& session, std::shared_ptr<Stream> stream);
  static net::awaitable<void> send_messages(std::shared_ptr<Session> session, std::shared_ptr<Stream> stream);

  Session& session_;
  std::shared_ptr<WebSocket> socket_;
};

}  // namespace candor::http
