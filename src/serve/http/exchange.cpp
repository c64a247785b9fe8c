#include "serve/http/exchange.h"

#include <utility>

namespace candor::http {

void Exchange::respond(HttpResponse response) {
  {
    const std::lock_guard lock(mutex_);
    if (has_head_ || is_gone_) return;
    has_head_ = is_finished_ = true;
    waiting_.head = std::move(response);
    waiting_.is_last = true;
    on_gone_ = nullptr;
  }
  wake();
}

void Exchange::open_stream(HttpResponse head) {
  {
    const std::lock_guard lock(mutex_);
    if (has_head_ || is_gone_) return;
    has_head_ = true;
    waiting_.head = std::move(head);
    waiting_.is_stream = true;
  }
  wake();
}

bool Exchange::write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_cut_ || is_finished_) return false;
    is_cut_ = waiting_.bytes.size() + bytes.size() > max_waiting_bytes_;
    if (!is_cut_) waiting_.bytes.append(bytes);
  }
  wake();
  return true;
}

void Exchange::finish() {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_finished_) return;
    is_finished_ = true;
    waiting_.is_last = true;
    on_gone_ = nullptr;
  }
  wake();
}

void Exchange::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_gone_) {
      if (!is_finished_) on_gone_ = std::move(callback);
      return;
    }
  }
  callback();
}

Exchange::Output Exchange::take() {
  const std::lock_guard lock(mutex_);
  Output output = std::move(waiting_);
  waiting_ = Output{};
  waiting_.is_stream = output.is_stream;
  return output;
}

bool Exchange::is_cut() const {
  const std::lock_guard lock(mutex_);
  return is_cut_;
}

void Exchange::mark_gone() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return;
    is_gone_ = true;
    callback = std::exchange(on_gone_, nullptr);
    waiting_.bytes.clear();
  }
  if (callback) callback();
}

}  // namespace candor::http
