#include "serve/openai/job.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace candor::openai {

void Job::start(const ApiRequest& request) {
  is_stream_ = request.stream;
  names_ = request.names;
  n_per_prompt_ = static_cast<size_t>(request.n_choices);
  n_open_ = request.requests.size();
  for (size_t i = 0; i < request.requests.size() && !is_cancelled_; ++i) {
    if (!submit(request, i)) return cancel_requests();
  }
  if (is_cancelled_) return cancel_requests();
  if (is_stream_) {
    sink_->open_stream();
    const auto emit = [this](const Json& chunk) { sink_->chunk(to_text(chunk)); };
    for (size_t i = 0; i < request.requests.size() * n_per_prompt_; ++i) reply_->open(i, emit);
  }
  drain();
}

bool Job::submit(const ApiRequest& request, size_t prompt) {
  const auto on_event = [self = shared_from_this(), prompt](const TokenEvent& event) { self->push(prompt, event); };
  const auto id = engine_.submit(request.requests[prompt], on_event);
  if (!id) {
    fail(to_api_error(id.error(), names_));
    return false;
  }
  const std::lock_guard lock(mutex_);
  ids_.push_back(*id);
  return true;
}

void Job::push(size_t prompt, const TokenEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    arrived_.push_back({.choice = prompt * n_per_prompt_ + static_cast<size_t>(event.choice), .event = event});
  }
  schedule();
}

void Job::schedule() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_scheduled_, true)) return;
  }
  workers_.post_first([self = shared_from_this()] { self->drain(); });
}

void Job::drain() {
  while (true) {
    std::vector<Arrived> arrived;
    std::optional<ErrorInfo> error;
    {
      const std::lock_guard lock(mutex_);
      arrived.swap(arrived_);
      error = std::exchange(abort_error_, std::nullopt);
      if (arrived.empty() && !error) {
        is_scheduled_ = false;
        return;
      }
    }
    for (const Arrived& one : arrived) take(one);
    if (error) {
      fail(*error);
      cancel_requests();
    }
  }
}

void Job::take(const Arrived& arrived) {
  if (is_over_ || is_cancelled_) return;
  if (arrived.event.error) {
    fail(to_api_error(*arrived.event.error, names_));
    return cancel_requests();
  }
  const auto emit = [this](const Json& chunk) { sink_->chunk(to_text(chunk)); };
  reply_->on_event(arrived.choice, arrived.event, emit);
  if (arrived.event.summary && --n_open_ == 0) finish();
}

void Job::finish() {
  is_over_ = true;
  if (!is_stream_) return sink_->whole(to_text(reply_->whole()));
  reply_->close([this](const Json& chunk) { sink_->chunk(to_text(chunk)); });
  sink_->end_stream();
}

void Job::fail(const ErrorInfo& error) {
  if (std::exchange(is_over_, true)) return;
  sink_->fail(error);
}

void Job::cancel() {
  is_cancelled_ = true;
  cancel_requests();
}

void Job::abort(const ErrorInfo& error) {
  {
    const std::lock_guard lock(mutex_);
    abort_error_ = error;
  }
  schedule();
}

void Job::cancel_requests() {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids.swap(ids_);
  }
  for (const RequestId id : ids) {
    if (const auto cancelled = engine_.cancel(id); !cancelled) continue;  // it has ended
  }
}

}  // namespace candor::openai
