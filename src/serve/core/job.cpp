#include "serve/core/job.h"

#include <new>
#include <utility>

#include <nlohmann/json.hpp>

#include "candor/verify.h"
#include "serve/http/faults.h"

namespace candor::serve {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void Job::start(const ApiRequest& request) noexcept {
  try {
    if (!begin(request)) return cancel_requests();
  } catch (...) {
    end_by(std::current_exception());
  }
  go_on();
}

// False when there will be no reply, or it is out already.
bool Job::begin(const ApiRequest& request) {
  is_stream_ = request.stream;
  names_ = request.names;
  n_per_prompt_ = static_cast<size_t>(request.n_choices);
  n_open_ = request.requests.size();
  has_receipts_ = request.requests.front().receipt;
  receipts_.resize(n_open_);
  for (size_t i = 0; i < request.requests.size() && !is_cancelled_; ++i) {
    if (!submit(request, i)) return false;
  }
  if (is_cancelled_) return false;
  if (is_stream_) {
    sink_->open_stream();
    is_open_ = true;
    opened_ns_ = now_ns();
    last_chunk_ns_ = opened_ns_;
    const auto out = [this](const Json& chunk) { emit(chunk); };
    for (size_t i = 0; i < request.requests.size() * n_per_prompt_; ++i) reply_->open(i, out);
  }
  return true;
}

bool Job::submit(const ApiRequest& request, size_t prompt) {
  const auto on_event = [self = shared_from_this(), prompt](const TokenEvent& event) { self->push(prompt, event); };
  const auto id = engine_.submit(request.requests[prompt], on_event);
  if (!id) {
    fail(with_api_field(id.error(), names_));
    return false;
  }
  const std::lock_guard lock(mutex_);
  ids_.push_back(*id);
  return true;
}

void Job::push(size_t prompt, const TokenEvent& event) noexcept {
  {
    const std::lock_guard lock(mutex_);
    try {
      arrived_.push_back({.choice = prompt * n_per_prompt_ + static_cast<size_t>(event.choice), .event = event});
    } catch (const std::bad_alloc&) {
      has_lost_events_ = true;
    }
  }
  schedule();
}

void Job::schedule() noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_scheduled_, true)) return;
  }
  workers_.post_first(shared_from_this());
}

void Job::go_on() noexcept {
  while (true) {
    try {
      return drain();
    } catch (...) {
      end_by(std::current_exception());  // what else has come is dropped
    }
  }
}

void Job::drain() {
  while (true) {
    std::vector<Arrived> arrived;
    std::optional<Error> error;
    bool must_tell = false;
    {
      const std::lock_guard lock(mutex_);
      arrived.swap(arrived_);
      error = std::exchange(abort_error_, std::nullopt);
      if (std::exchange(has_lost_events_, false)) throw std::bad_alloc();
      must_tell = std::exchange(must_tell_, false);
      if (arrived.empty() && !error && !must_tell) {
        is_scheduled_ = false;
        return;
      }
    }
    const int64_t last_said = last_chunk_ns_;
    for (const Arrived& one : arrived) take(one);
    if (must_tell && last_chunk_ns_ == last_said) say_waiting();
    if (error) {
      fail(*error);
      cancel_requests();
    }
  }
}

void Job::take(const Arrived& arrived) {
  if (is_over_ || is_cancelled_) return;
  if (arrived.event.error) {
    fail(with_api_field(*arrived.event.error, names_));
    return cancel_requests();
  }
  const auto& summary = arrived.event.summary;
  if (summary && summary->receipt) receipts_[arrived.choice / n_per_prompt_] = summary->receipt;
  const bool is_last = summary && n_open_ == 1;
  std::vector<Json> last;
  reply_->on_event(arrived.choice, arrived.event, [&](const Json& chunk) {
    if (is_last && has_receipts_)
      last.push_back(chunk);
    else
      emit(chunk);
  });
  if (!has_enough_ && reply_->has_enough()) {
    has_enough_ = true;
    cancel_requests();
  }
  if (summary && --n_open_ == 0) finish(std::move(last));
}

void Job::emit(const Json& chunk) {
  sink_->chunk(chunk);
  last_chunk_ns_ = now_ns();
}

void Job::tick(std::chrono::milliseconds quiet) {
  const int64_t last = last_chunk_ns_;
  if (last == 0 || now_ns() - last < std::chrono::nanoseconds(quiet).count()) return;
  {
    const std::lock_guard lock(mutex_);
    must_tell_ = true;
  }
  schedule();
}

void Job::say_waiting() {
  if (is_over_ || is_cancelled_) return;
  constexpr double kMsPerNs = 1e-6;
  const int64_t now = now_ns();
  const Waiting waiting{.ms = static_cast<double>(now - opened_ns_) * kMsPerNs, .prompt = prompt_progress()};
  reply_->on_wait(waiting, [this](const Json& chunk) { emit(chunk); });
  last_chunk_ns_ = now;
}

PromptProgress Job::prompt_progress() {
  const std::lock_guard lock(mutex_);
  PromptProgress sum;
  for (const RequestId id : ids_) {
    const auto one = engine_.prompt_progress(id);
    if (!one) continue;
    sum.n_prompt += one->n_prompt;
    sum.n_cached += one->n_cached;
    sum.n_read += one->n_read;
  }
  return sum;
}

// held: chunks of the last event, where one of them shall have the receipts.
void Job::finish(std::vector<Json> held) {
  ticket_->free_places();
  if (is_stream_) {
    reply_->close([&](const Json& chunk) {
      if (has_receipts_)
        held.push_back(chunk);
      else
        emit(chunk);
    });
    if (!held.empty()) add_receipts(held.back());
    for (const Json& chunk : held) emit(chunk);
    sink_->end_stream();
  } else {
    Json json = reply_->whole();
    add_receipts(json);
    sink_->whole(to_text(json));
  }
  is_over_ = true;
}

// One, or a list where the reply answers several prompts.
void Job::add_receipts(Json& json) const {
  if (!has_receipts_ || !json.is_object()) return;
  Json list = Json::array();
  for (const auto& receipt : receipts_) list.push_back(receipt ? Json::parse(to_json(*receipt)) : Json());
  json["receipt"] = list.size() == 1 ? std::move(list.front()) : std::move(list);
}

void Job::fail(const Error& error) {
  if (is_over_) return;
  ticket_->free_places();
  if (is_open_ && reply_->on_error(error, [this](const Json& chunk) { emit(chunk); })) {
    sink_->end_stream();
  } else {
    sink_->fail(error);
  }
  is_over_ = true;
}

void Job::end_by(const std::exception_ptr& fault) noexcept {
  workers_.faults().note(http::FaultPlace::kReply, fault);
  cancel_requests();
  try {
    fail(http::error_of(fault));
  } catch (...) {
    is_over_ = true;
    sink_->cut();
  }
}

void Job::cancel() {
  is_cancelled_ = true;
  cancel_requests();
}

void Job::abort(const Error& error) {
  {
    const std::lock_guard lock(mutex_);
    abort_error_ = error;
  }
  schedule();
}

void Job::cancel_requests() noexcept {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    ids.swap(ids_);
  }
  for (const RequestId id : ids) {
    try {
      if (const auto cancelled = engine_.cancel(id); !cancelled) continue;  // it has ended
    } catch (...) {  // it runs to its end, unread
      workers_.faults().note(http::FaultPlace::kReply, std::current_exception());
    }
  }
}

}  // namespace candor::serve
