#include "capi/run.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace candor::capi {
namespace {

candor_finish finish_of(const std::optional<FinishReason>& reason) {
  static_assert(static_cast<int>(FinishReason::kError) + 1 == CANDOR_FAILED);
  return reason ? static_cast<candor_finish>(static_cast<int>(*reason) + 1) : CANDOR_GOES_ON;
}

}  // namespace

Run::Queue::~Queue() {
  if (fd >= 0) ::close(fd);
}

Result<std::shared_ptr<Run>> Run::start(const std::shared_ptr<Engine>& engine, const Request& request, OnText on_text) {
  auto run = std::make_shared<Run>();
  run->engine_ = engine;
  run->on_text_ = std::move(on_text);
  const auto take = [queue = run->queue_](const TokenEvent& event) {
    const std::lock_guard lock(queue->mutex);
    queue->events.push_back(event);
    queue->arrived.notify_all();
    if (queue->fd >= 0 && queue->events.size() == 1) eventfd_write(queue->fd, 1);
  };
  CANDOR_ASSIGN(run->id_, engine->submit(request, take));
  return run;
}

candor_status Run::next(candor_event& event, int64_t timeout_ms, std::optional<Error>& error) {
  const std::lock_guard turn(turn_);
  if (has_ended_) return CANDOR_END;
  {
    std::unique_lock lock(queue_->mutex);
    const auto is_there = [this] { return !queue_->events.empty(); };
    constexpr int64_t kMost = int64_t{365} * 24 * 3600 * 1000;
    if (timeout_ms < 0) {
      queue_->arrived.wait(lock, is_there);
    } else if (!queue_->arrived.wait_for(lock, std::chrono::milliseconds(std::min(timeout_ms, kMost)), is_there)) {
      return CANDOR_TIMEOUT;
    }
    last_ = std::move(queue_->events.front());
    queue_->events.pop_front();
    eventfd_t ignored = 0;
    if (queue_->fd >= 0 && queue_->events.empty()) eventfd_read(queue_->fd, &ignored);
  }
  has_event_ = true;
  has_ended_ = last_.summary.has_value();
  if (last_.choice == 0) text_ += last_.text;
  show(event);
  if (last_.choice == 0 && last_.finish && !last_.error && on_text_) on_text_(std::move(text_));
  error = last_.error;
  return CANDOR_OK;
}

void Run::show(candor_event& event) {
  top_.clear();
  for (const TokenLogprob& one : last_.top_logprobs) top_.push_back({one.token, one.logprob});
  candor_event whole = {};
  whole.size = event.size;
  whole.choice = last_.choice;
  whole.token = last_.token;
  whole.text = last_.text.c_str();
  whole.text_size = last_.text.size();
  whole.finish = finish_of(last_.finish);
  whole.stop_index = last_.stop_index ? static_cast<int32_t>(*last_.stop_index) : -1;
  whole.has_logprob = last_.logprob.has_value() ? 1 : 0;
  whole.logprob = last_.logprob ? last_.logprob->logprob : 0.0f;
  whole.top = top_.data();
  whole.n_top = top_.size();
  std::memcpy(&event, &whole, std::min(event.size, sizeof whole));
}

Result<int> Run::fd() {
  const std::lock_guard lock(queue_->mutex);
  if (queue_->fd < 0) queue_->fd = ::eventfd(queue_->events.empty() ? 0 : 1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (queue_->fd < 0) return fail(ErrorKind::kIo, std::string("no eventfd: ") + std::strerror(errno));
  return queue_->fd;
}

void Run::cancel() {
  if (const auto engine = engine_.lock()) static_cast<void>(engine->cancel(id_));
}

Result<RequestSummary> Run::summary() {
  const std::lock_guard turn(turn_);
  if (has_ended_) return *last_.summary;
  return fail(ErrorKind::kInvalidInput, "the run has not ended: pull its events until CANDOR_END");
}

Result<TokenEvent> Run::explained() {
  const std::lock_guard turn(turn_);
  if (has_event_ && last_.explanation) return last_;
  return fail(ErrorKind::kInvalidInput, "the last event explains nothing: set the request's explain to true",
              "explain");
}

}  // namespace candor::capi
