#include "engine/inbox.h"

#include <string>
#include <utility>

namespace candor::engine {

Expected<void> Inbox::room_for(int32_t n_sequences) const {
  if (n_sequences <= max_in_work_ - n_choices_) return {};
  return fail(ErrorKind::kOverloaded, "the engine is full: " + std::to_string(n_choices_) +
                                          " answers are in work or waiting, at most " + std::to_string(max_in_work_) +
                                          "; try again later");
}

Expected<void> Inbox::check_room(int32_t n_coming) const {
  const std::lock_guard lock(mutex_);
  return room_for(n_coming + n_reading_ + 1);
}

Expected<RequestId> Inbox::submit(std::unique_ptr<ActiveRequest> request) {
  RequestId id = 0;
  {
    const std::lock_guard lock(mutex_);
    if (is_closed_) return fail(ErrorKind::kCancelled, "the engine is shutting down");
    CANDOR_TRY(room_for(request->n_sequences()));
    id = next_id_;
    request->id = request->spec.id = id;
    in_work_.insert(id);
    next_id_ += request->n_sequences();
    n_choices_ += request->n_sequences();
    arrived_.submitted.push_back(std::move(request));
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

void Inbox::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_one();
}

bool Inbox::wait(InboxBatch& batch, bool has_work) {
  batch.submitted.clear();
  batch.cancelled.clear();
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] {
    return has_work || is_closed_ || !arrived_.submitted.empty() || !arrived_.cancelled.empty();
  };
  changed_.wait(lock, is_ready);
  std::swap(batch, arrived_);
  return !is_closed_;
}

void Inbox::forget(const ActiveRequest& request) {
  const std::lock_guard lock(mutex_);
  in_work_.erase(request.id);
  n_choices_ -= request.n_sequences();
}

}  // namespace candor::engine
