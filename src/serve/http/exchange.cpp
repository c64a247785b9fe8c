#include "serve/http/exchange.h"

#include <utility>

namespace candor::http {
namespace {

constexpr size_t kPatientBytes = 64 * 1024;  // that a reader may leave waiting whatever the server holds

}  // namespace

void Exchange::drop_body() {
  const std::lock_guard lock(mutex_);
  request_.body = std::string();
  body_bytes_ = 0;
  count_held();
}

void Exchange::count_held() {
  const size_t head = waiting_.head ? waiting_.head->body.size() : 0;
  held_.resize(body_bytes_ + taken_bytes_ + static_cast<int64_t>(waiting_.bytes.size() + head));
}

void Exchange::respond(HttpResponse response) {
  response = in_form_of(request_, std::move(response));
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_finished_ || (has_head_ && !last_words_)) return;
    if (has_head_) {
      waiting_.bytes += last_words_(response);
    } else {
      waiting_.head = std::move(response);
    }
    has_head_ = is_finished_ = true;
    waiting_.is_last = true;
    count_held();
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

void Exchange::open_before_reply(HttpResponse head, std::function<std::string(const HttpResponse&)> last_words) {
  {
    const std::lock_guard lock(mutex_);
    if (has_head_ || is_gone_) return;
    last_words_ = std::move(last_words);
  }
  open_stream(std::move(head));
}

bool Exchange::write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_ || is_cut_ || is_finished_) return false;
    const size_t n_waiting = waiting_.bytes.size() + bytes.size();
    is_cut_ = n_waiting > max_waiting_bytes_ || (n_waiting > kPatientBytes && held_.is_exceeded());
    if (!is_cut_) waiting_.bytes.append(bytes);
    count_held();
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

void Exchange::note(std::string words) {
  const std::lock_guard lock(mutex_);
  note_ = std::move(words);
}

std::string Exchange::noted() const {
  const std::lock_guard lock(mutex_);
  return note_;
}

void Exchange::cut() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_cut_ = true;
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
  taken_bytes_ = static_cast<int64_t>(output.bytes.size() + (output.head ? output.head->body.size() : 0));
  count_held();
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
    waiting_.bytes = std::string();
    count_held();
  }
  if (callback) callback();
}

}  // namespace candor::http
