#include "serve/http/web_socket.h"

#include <utility>

namespace candor::http {

bool WebSocket::send(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_cut_) return false;
    waiting_bytes_ += message.size();
    is_cut_ = waiting_bytes_ > max_waiting_bytes_;
    if (!is_cut_) waiting_.push_back(std::move(message));
  }
  wake_();
  return true;
}

std::deque<std::string> WebSocket::take() {
  const std::lock_guard lock(mutex_);
  waiting_bytes_ = 0;
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
}

}  // namespace candor::http
