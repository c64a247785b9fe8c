#include "serve/http/web_socket_session.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket.hpp>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <exception>
#include <string>
#include <utility>

#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"
#include "serve/http/server.h"
#include "serve/http/wire.h"

namespace candor::http {
namespace {

namespace websocket = boost::beast::websocket;
constexpr std::chrono::seconds kHandshakeTimeout{10};
constexpr std::chrono::seconds kRoomPoll{1};
constexpr size_t kReadAtOnce = 64 * 1024;

}  // namespace

// How Beast ends what lies below a WebSocket, found by this name.
template <class Handler>
void async_teardown(boost::beast::role_type role, Wire& wire, Handler&& handler) {
  if (wire.is_tls()) return wire.async_goodbye(std::forward<Handler>(handler));
  websocket::async_teardown(role, wire.tcp(), std::forward<Handler>(handler));
}

struct WebSocketSession::Stream {
  Stream(Wire wire, std::shared_ptr<WebSocket> web_socket)
      : ws(std::move(wire)), room(ws.get_executor()), socket(std::move(web_socket)) {}

  websocket::stream<Wire, false> ws;
  void close() { ws.next_layer().close(); }

  net::steady_timer room;  // ends when there may be room for another message
  std::shared_ptr<WebSocket> socket;
  bool is_over = false;  // no more messages come
};

net::awaitable<void> WebSocketSession::run(
    const boost::beast::http::request<boost::beast::http::string_body>& upgrade) {
  Network& network = session_.network_;
  auto stream = std::make_shared<Stream>(std::move(session_.link_.wire()), socket_);
  stream->ws.set_option(websocket::stream_base::timeout{kHandshakeTimeout, network.options.idle_timeout, true});
  stream->ws.read_message_max(network.options.body_bytes);
  stream->ws.auto_fragment(false);
  const auto [error] = co_await stream->ws.async_accept(upgrade, kTuple);
  ReplyRecord record{.status = error ? 400 : 101, .was_cut = static_cast<bool>(error)};
  session_.report(socket_->request(), record);
  if (error) co_return;
  session_.on_signal_ = [weak = std::weak_ptr(stream)] {
    if (const auto open = weak.lock()) open->room.cancel();
  };
  session_.close_web_socket_ = [weak = std::weak_ptr(stream)] {
    if (const auto open = weak.lock()) open->close();
  };
  std::exception_ptr fault;
  try {
    network.handler.on_socket(socket_);
    const std::shared_ptr<Session> session = session_.shared_from_this();
    net::co_spawn(network.io, send_messages(session, stream), [&network](const std::exception_ptr& end) {
      if (end) network.faults.note(FaultPlace::kWebSocket, end);
    });
    co_await read_messages(session_, stream);
  } catch (...) {
    fault = std::current_exception();
  }
  if (fault) network.faults.note(FaultPlace::kWebSocket, fault);
  stream->is_over = true;
  socket_->mark_gone();
  session_.guarded([&] { network.handler.on_socket_closed(socket_); });
  stream->close();
  session_.signal();
}

net::awaitable<void> WebSocketSession::read_messages(Session& session, std::shared_ptr<Stream> stream) {
  Handler& handler = session.network_.handler;
  while (true) {
    while (!stream->socket->has_room()) {
      stream->room.expires_after(kRoomPoll);
      co_await stream->room.async_wait(kTuple);
      if (stream->socket->is_cut()) co_return;
    }
    boost::beast::flat_buffer buffer;
    FairBudget::Share held = handler.bytes().share_of(stream->socket->request().key);
    do {
      const auto [error, n_read] = co_await stream->ws.async_read_some(buffer, kReadAtOnce, kTuple);
      if (error) co_return;
      if (held.try_grow(static_cast<int64_t>(n_read))) continue;
      const websocket::close_reason reason(websocket::close_code::try_again_later,
                                           "the server holds enough; try again");
      co_await stream->ws.async_close(reason, kTuple);
      co_return;
    } while (!stream->ws.is_message_done());
    std::string text = boost::beast::buffers_to_string(buffer.data());
    buffer = {};
    handler.on_message(stream->socket, stream->socket->received(std::move(text), std::move(held)));
  }
}

net::awaitable<void> WebSocketSession::send_messages(std::shared_ptr<Session> session, std::shared_ptr<Stream> stream) {
  stream->ws.text(true);
  bool is_open = true;
  while (is_open && !stream->is_over) {
    co_await session->link_.next_event(session->network_.options.ping_interval);
    std::deque<std::string> messages = stream->socket->take();
    while (is_open && !stream->is_over && !messages.empty()) {
      const auto [error, n_written] = co_await stream->ws.async_write(net::buffer(messages.front()), kTuple);
      is_open = !error;
      messages.pop_front();
    }
  }
  if (!is_open) stream->close();
}

}  // namespace candor::http
