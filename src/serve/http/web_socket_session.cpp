#include "serve/http/web_socket_session.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket.hpp>
#include <utility>

namespace candor::http {
namespace {

namespace websocket = boost::beast::websocket;
constexpr std::chrono::seconds kHandshakeTimeout{10};

}  // namespace

struct WebSocketSession::Stream {
  Stream(net::ip::tcp::socket tcp, std::shared_ptr<WebSocket> web_socket)
      : ws(std::move(tcp)), socket(std::move(web_socket)) {}

  websocket::stream<net::ip::tcp::socket, false> ws;
  std::shared_ptr<WebSocket> socket;
  bool is_over = false;     // no more messages come
  bool is_sending = false;  // send_messages runs
};

net::awaitable<void> WebSocketSession::run(
    const boost::beast::http::request<boost::beast::http::string_body>& upgrade) {
  Network& network = session_.network_;
  auto stream = std::make_shared<Stream>(std::move(session_.socket_), socket_);
  stream->ws.set_option(websocket::stream_base::timeout{kHandshakeTimeout, network.options.idle_timeout, true});
  stream->ws.read_message_max(network.options.body_bytes);
  stream->ws.auto_fragment(false);
  const auto [error] = co_await stream->ws.async_accept(upgrade, kTuple);
  ReplyRecord record{.status = error ? 400 : 101, .was_cut = static_cast<bool>(error)};
  network.handler.on_reply(socket_->request(), record);
  if (error) co_return;
  session_.close_web_socket_ = [weak = std::weak_ptr(stream)] {
    const auto open = weak.lock();
    boost::system::error_code ignored;
    if (open) open->ws.next_layer().close(ignored);
  };
  network.handler.on_socket(socket_);
  stream->is_sending = true;
  net::co_spawn(network.io, send_messages(session_, stream), net::detached);
  co_await read_messages(session_, stream);
  stream->is_over = true;
  socket_->mark_gone();
  network.handler.on_socket_closed(socket_);
  while (stream->is_sending) {  // it borrows the session
    boost::system::error_code ignored;
    stream->ws.next_layer().close(ignored);
    session_.signal();
    co_await net::post(network.io, net::use_awaitable);
  }
}

net::awaitable<void> WebSocketSession::read_messages(Session& session, std::shared_ptr<Stream> stream) {
  while (true) {
    boost::beast::flat_buffer buffer;
    const auto [error, n_read] = co_await stream->ws.async_read(buffer, kTuple);
    if (error) co_return;
    session.network_.handler.on_message(stream->socket, boost::beast::buffers_to_string(buffer.data()));
  }
}

net::awaitable<void> WebSocketSession::send_messages(Session& session, std::shared_ptr<Stream> stream) {
  stream->ws.text(true);
  bool is_open = true;
  while (is_open && !stream->is_over) {
    co_await session.next_event(session.network_.options.ping_interval);
    std::deque<std::string> messages = stream->socket->take();
    while (is_open && !stream->is_over && !messages.empty()) {
      const auto [error, n_written] = co_await stream->ws.async_write(net::buffer(messages.front()), kTuple);
      is_open = !error;
      messages.pop_front();
    }
  }
  boost::system::error_code ignored;
  if (!is_open) stream->ws.next_layer().close(ignored);
  stream->is_sending = false;
}

}  // namespace candor::http
