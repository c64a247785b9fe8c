#include "engine/request/inbox.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/request/stopwatch.h"

namespace candor::engine {

Result<void> Inbox::room_for(int32_t n_sequences) const {
  if (n_sequences <= max_in_work_ - n_choices_) return {};
  return fail(ErrorKind::kOverloaded, "the engine is full: " + std::to_string(n_choices_) +
                                          " answers are in work or waiting, at most " + std::to_string(max_in_work_) +
                                          "; try again later");
}

Result<void> Inbox::check_room(int32_t n_coming) const {
  const std::lock_guard lock(mutex_);
  return room_for(n_coming + n_reading_ + 1);
}

Result<RequestId> Inbox::submit(std::unique_ptr<ActiveRequest> request) {
  RequestId id = 0;
  request->meter = std::make_shared<PromptMeter>(std::ssize(request->spec.prompt));
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return fail(ErrorKind::kCancelled, "the engine is shutting down");
    CANDOR_TRY(room_for(request->n_sequences()));
    id = next_id_;
    request->id = request->spec.id = id;
    const int32_t n_sequences = request->n_sequences();
    in_work_.insert_or_assign(id, request->meter);  // where memory runs out now, the next request has this id
    arrived_.submitted.push_back(std::move(request));
    next_id_ += n_sequences;
    n_choices_ += n_sequences;
  }
  changed_.notify_one();
  return id;
}

bool Inbox::cancel(RequestId id) {
  {
    const std::lock_guard lock(mutex_);
    if (!in_work_.contains(id)) return false;
    arrived_.cancelled.push_back(id);
  }
  changed_.notify_one();
  return true;
}

std::optional<PromptProgress> Inbox::prompt_progress(RequestId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = in_work_.find(id);
  if (found == in_work_.end()) return std::nullopt;
  return found->second->progress();
}

bool Inbox::run_task(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return false;
    arrived_.tasks.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void Inbox::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_one();
}

void Inbox::wake() {
  {
    const std::lock_guard lock(mutex_);
    is_woken_ = true;
  }
  changed_.notify_one();
}

bool Inbox::wait(InboxBatch& batch, int64_t most_ns) {
  batch.submitted.clear();
  batch.cancelled.clear();
  batch.tasks.clear();
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] {
    return is_woken_ || is_closed_ || !arrived_.submitted.empty() || !arrived_.cancelled.empty() ||
           !arrived_.tasks.empty();
  };
  if (most_ns == kNever) changed_.wait(lock, is_ready);
  if (most_ns > 0) changed_.wait_for(lock, std::chrono::nanoseconds(most_ns), is_ready);
  is_woken_ = false;
  std::swap(batch, arrived_);
  return !is_closed_;
}

void Inbox::forget(const ActiveRequest& request) {
  const std::lock_guard lock(mutex_);
  in_work_.erase(request.id);
  n_choices_ -= request.n_sequences();
}

}  // namespace candor::engine
