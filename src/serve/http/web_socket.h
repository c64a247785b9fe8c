#pragma once
// One WebSocket as its handler sees it. send() queues messages, in order, from any thread, until the socket takes them:
// a client that lets more than `max_waiting_bytes` pile up is cut off. The handler has at most 32 received messages, or
// 1 MiB of them, at a time: no more is read until it has dealt with some.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "serve/http/fair_budget.h"
#include "serve/http/message.h"

namespace candor::http {

struct SocketMessage {
  std::string text;
  std::shared_ptr<void> held{};  // let go when the message has been dealt with
};

class WebSocket : public std::enable_shared_from_this<WebSocket> {
 public:
  // held: nothing yet, of the server's bytes in flight.
  WebSocket(HttpRequest request, size_t max_waiting_bytes, std::function<void()> wake, FairBudget::Share held = {})
      : request_(std::move(request)),
        max_waiting_bytes_(max_waiting_bytes),
        wake_(std::move(wake)),
        held_(std::move(held)) {}

  // The upgrade request.
  const HttpRequest& request() const { return request_; }
  // False once the client is gone or cut off.
  bool send(std::string message);
  // Ends the connection without a word.
  void cut() noexcept;
  // What the handler keeps for this socket; set it before the first message arrives.
  std::shared_ptr<void> state;
  // Requests in work; a socket with none is closed at once when the server drains.
  std::atomic<int32_t> n_busy{0};

  // For the network thread.
  std::deque<std::string> take();
  // A message of so many bytes, as the handler gets it.
  SocketMessage received(std::string text, FairBudget::Share held);
  // Another message may be read.
  bool has_room() const;
  bool is_cut() const;
  bool is_gone() const;
  void mark_gone();

 private:
  struct Received;

  // Constant after construction.
  const HttpRequest request_;
  const size_t max_waiting_bytes_;
  const std::function<void()> wake_;
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  FairBudget::Share held_;  // of what waits
  size_t n_received_ = 0;   // and not yet dealt with
  size_t received_bytes_ = 0;
  bool is_gone_ = false;
  bool is_cut_ = false;
};

}  // namespace candor::http
