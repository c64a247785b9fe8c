#pragma once
// The connection to one client: its bytes, the time that each step may take, and the news that the client has left.
// Network thread only. Coroutines of it run while its owner lives.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "serve/http/faults.h"
#include "serve/http/wire.h"

namespace candor::http {

// Completion token of every co_await: the error comes with the result, nothing is thrown.
inline constexpr auto kTuple = net::as_tuple(net::use_awaitable);

inline constexpr std::size_t kReadBytes = 4096;  // of the client at once, usually

class ClientLink {
 public:
  // faults: borrowed.
  ClientLink(net::ip::tcp::socket socket, net::io_context& io, Faults& faults);

  Wire& wire() { return wire_; }
  boost::beast::flat_buffer& buffer() { return buffer_; }  // what came and nobody took

  // What waits is cancelled when the time is over; has_expired() then says so, until the next deadline.
  void set_deadline(std::chrono::milliseconds at_most);
  void clear_deadline();
  bool has_expired() const { return has_expired_; }

  // False where the client does not take them.
  net::awaitable<bool> write(const std::string& bytes);
  // True when notify() was called, false after `at_most`.
  net::awaitable<bool> next_event(std::chrono::milliseconds at_most);
  void forget_event() { has_event_ = false; }
  void notify();
  // Ends what waits, a read or a write.
  void stop_waiting();
  // Lets the client read the last reply although it may still be sending: closing at once would reset the connection.
  net::awaitable<void> linger();
  // From now on stop_waiting() closes.
  void begin_lingering() { is_lingering_ = true; }
  void close();

  // Until end_watch(): on_gone runs when the client has left. What else comes is its next request, and is kept.
  void watch_for_end(std::function<void()> on_gone);
  void end_watch() { ++n_watches_; }
  bool is_gone() const { return is_gone_; }
  void mark_gone() { is_gone_ = true; }
  void mark_secured() { is_secured_ = true; }  // by a handshake of TLS

 private:
  void wait_for_end();
  void read_while_busy();

  Faults& faults_;
  Wire wire_;
  net::steady_timer deadline_;
  net::steady_timer event_;
  boost::beast::flat_buffer buffer_;
  std::function<void()> on_gone_{};
  std::shared_ptr<char> alive_ = std::make_shared<char>();  // for callbacks that may come too late
  uint64_t n_deadlines_ = 0;
  uint64_t n_watches_ = 0;
  bool has_event_ = false;
  bool has_expired_ = false;
  bool is_gone_ = false;
  bool is_secured_ = false;
  bool is_lingering_ = false;
};

}  // namespace candor::http
