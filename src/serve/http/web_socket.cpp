#include "serve/http/web_socket.h"

#include <utility>

namespace candor::http {
namespace {

constexpr size_t kPatientSocketBytes = 64 * 1024;  // that a reader may leave waiting whatever the server holds
constexpr size_t kMaxReceived = 32;
constexpr size_t kMaxReceivedBytes = 1u << 20;  // one message may be larger

}  // namespace

// A message on its way through the handler.
struct WebSocket::Received {
  Received(std::shared_ptr<WebSocket> web_socket, FairBudget::Share share, size_t size)
      : socket(std::move(web_socket)), held(std::move(share)), n_bytes(size) {
    const std::lock_guard lock(socket->mutex_);
    ++socket->n_received_;
    socket->received_bytes_ += n_bytes;
  }
  ~Received() {
    {
      const std::lock_guard lock(socket->mutex_);
      --socket->n_received_;
      socket->received_bytes_ -= n_bytes;
    }
    socket->wake_();
  }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  const std::shared_ptr<WebSocket> socket;
  const FairBudget::Share held;
  const size_t n_bytes;
};

SocketMessage WebSocket::received(std::string text, FairBudget::Share held) {
  const size_t n_bytes = text.size();
  return {std::move(text), std::make_shared<Received>(shared_from_this(), std::move(held), n_bytes)};
}

bool WebSocket::has_room() const {
  const std::lock_guard lock(mutex_);
  return n_received_ < kMaxReceived && received_bytes_ < kMaxReceivedBytes;
}

bool WebSocket::send(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_cut_) return false;
    const size_t n_waiting = waiting_bytes_ + message.size();
    is_cut_ = n_waiting > max_waiting_bytes_ || (n_waiting > kPatientSocketBytes && held_.is_exceeded());
    if (!is_cut_) {
      waiting_.push_back(std::move(message));
      waiting_bytes_ = n_waiting;
      held_.resize(static_cast<int64_t>(n_waiting));
    }
  }
  wake_();
  return true;
}

void WebSocket::cut() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_cut_ = true;
  }
  wake_();
}

std::deque<std::string> WebSocket::take() {
  const std::lock_guard lock(mutex_);
  waiting_bytes_ = 0;
  held_.resize(0);
  return std::exchange(waiting_, {});
}

bool WebSocket::is_cut() const {
  const std::lock_guard lock(mutex_);
  return is_cut_;
}

bool WebSocket::is_gone() const {
  const std::lock_guard lock(mutex_);
  return is_gone_;
}

void WebSocket::mark_gone() {
  const std::lock_guard lock(mutex_);
  is_gone_ = true;
  waiting_.clear();
  held_.resize(0);
}

}  // namespace candor::http
