#include "serve/http/client_link.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace candor::http {
namespace {

using boost::system::error_code;
constexpr size_t kMaxPipelinedBytes = 64 * 1024;
constexpr size_t kMaxLingerBytes = 64u << 20;
constexpr std::chrono::milliseconds kLinger{2000};

}  // namespace

ClientLink::ClientLink(net::ip::tcp::socket socket, net::io_context& io, Faults& faults)
    : faults_(faults), wire_(std::move(socket)), deadline_(io), event_(io) {}

net::awaitable<bool> ClientLink::write(const std::string& bytes) {
  const auto [error, n_written] = co_await net::async_write(wire_, net::buffer(bytes), kTuple);
  co_return !error;
}

net::awaitable<bool> ClientLink::next_event(std::chrono::milliseconds at_most) {
  if (!has_event_) {
    event_.expires_after(at_most);
    co_await event_.async_wait(kTuple);
  }
  co_return std::exchange(has_event_, false);
}

void ClientLink::notify() {
  has_event_ = true;
  event_.cancel();
}

net::awaitable<void> ClientLink::linger() {
  begin_lingering();
  set_deadline(kLinger);
  if (is_secured_) {
    const auto [error] = co_await wire_.async_goodbye(kTuple);
    if (!error) co_return clear_deadline();
  }
  error_code ignored;
  wire_.tcp().shutdown(net::ip::tcp::socket::shutdown_send, ignored);
  for (size_t n_dropped = 0; n_dropped < kMaxLingerBytes && !has_expired_;) {
    buffer_.clear();
    const auto [error, n_read] = co_await wire_.tcp().async_read_some(buffer_.prepare(16 * kReadBytes), kTuple);
    if (error) break;
    n_dropped += n_read;
  }
  clear_deadline();
}

void ClientLink::stop_waiting() {
  if (is_lingering_) return wire_.close();
  wire_.cancel();
}

void ClientLink::close() {
  is_gone_ = true;
  wire_.close();
  notify();
}

void ClientLink::watch_for_end(std::function<void()> on_gone) {
  on_gone_ = std::move(on_gone);
  wait_for_end();
}

void ClientLink::wait_for_end() {
  const uint64_t watch = ++n_watches_;
  wire_.async_wait([this, watch, alive = std::weak_ptr(alive_)](error_code error) {
    if (error == net::error::operation_aborted || alive.expired() || watch != n_watches_) return;
    try {
      read_while_busy();
    } catch (...) {
      faults_.note(FaultPlace::kConnection, std::current_exception());
      close();
    }
  });
}

void ClientLink::read_while_busy() {
  error_code error;
  const size_t n_read = wire_.read_now(buffer_.prepare(kReadBytes), error);
  buffer_.commit(error ? 0 : n_read);
  if (error && error != net::error::would_block) {
    is_gone_ = true;
    stop_waiting();  // a write that waits for the reader
    on_gone_();
  } else if (buffer_.size() < kMaxPipelinedBytes) {
    wait_for_end();
  }
}

void ClientLink::set_deadline(std::chrono::milliseconds at_most) {
  const uint64_t deadline = ++n_deadlines_;
  has_expired_ = false;
  deadline_.expires_after(at_most);
  deadline_.async_wait([this, deadline, alive = std::weak_ptr(alive_)](error_code error) {
    if (error || alive.expired() || deadline != n_deadlines_) return;
    has_expired_ = true;
    stop_waiting();
  });
}

void ClientLink::clear_deadline() {
  ++n_deadlines_;
  has_expired_ = false;
  deadline_.cancel();
}

}  // namespace candor::http
