// StepLoop: exceptions. Nothing here takes memory, but for what callbacks do, so that it works where memory ran out.

#include <algorithm>
#include <utility>

#include "base/fault.h"
#include "engine/step/step_loop.h"

namespace candor::engine {
namespace {

Error copy_of(const Error& error) noexcept {
  try {
    return error;
  } catch (...) {
    return error_of_exception();
  }
}

// Of the choices that were not told of an end; -1 where all were.
int32_t last_untold(ActiveRequest& request) {
  int32_t i = request.n_choices() - 1;
  while (i >= 0 && request.choice(i).is_told) --i;
  return i;
}

}  // namespace

// The events behind the first n were made for the request before the exception came. REQUIRES: inside of a catch block.
void StepLoop::take_back(ActiveRequest& request, size_t n_events) noexcept {
  metrics_.n_faults.add();
  outbox_.truncate(n_events);
  fail(request);
}

// Guesses change no answer: where none can be made there are none.
void StepLoop::propose_guesses() noexcept {
  try {
    speculator_.propose(scheduler_, requests_);
  } catch (...) {
    metrics_.n_faults.add();
    speculator_.forget();
  }
}

// REQUIRES: inside of a catch block. The request leaves with end_broken().
void StepLoop::fail(ActiveRequest& request) noexcept {
  if (request.breakdown) return;
  request.breakdown = error_of_exception();
  ++n_broken_;
  if (std::exchange(request.n_open, 0) == 0) return;
  request.watch.on_end(clock_.now_ns());
  ++totals_.n_finished;
  ++n_finished_now_;
}

// Ends a request that never came in. REQUIRES: inside of a catch block.
void StepLoop::refuse(std::unique_ptr<ActiveRequest> request) noexcept {
  request->breakdown = error_of_exception();
  request->watch.on_end(clock_.now_ns());
  ++totals_.n_finished;
  store_stats();
  inbox_.forget(*request);
  tell_of_breakdown(*request);
}

// An exception came from what all share: every request that is not over ends in an error. REQUIRES: inside of a catch
// block.
void StepLoop::break_down(InboxBatch& batch) noexcept {
  metrics_.n_faults.add();
  needs_new_scheduler_ = true;
  to_fork_.clear();
  to_advance_.clear();
  kept_.clear();
  publish();
  for (const auto& request : requests_) fail(*request);
  for (auto& request : batch.submitted) {
    if (request == nullptr) continue;
    ++totals_.n_submitted;
    refuse(std::move(request));
  }
  end_broken();
}

void StepLoop::end_broken() noexcept {
  for (; n_broken_ > 0; --n_broken_) {
    ActiveRequest& broken = **std::ranges::find_if(requests_, [](const auto& r) { return r->breakdown.has_value(); });
    if (!needs_new_scheduler_) leave_scheduler(broken);
    const RequestTable::Owned request = requests_.take(broken);
    store_stats();
    inbox_.forget(*request);
    tell_of_breakdown(*request);
  }
}

void StepLoop::tell_of_breakdown(ActiveRequest& request) noexcept {
  const int32_t last = last_untold(request);
  for (int32_t i = 0; i <= last; ++i) {
    if (request.choice(i).is_told) continue;
    TokenEvent event;
    event.request = request.id;
    event.choice = i;
    event.finish = FinishReason::kError;
    event.error = copy_of(*request.breakdown);
    metrics_.n_finished[static_cast<size_t>(FinishReason::kError)].add();
    if (i == last) {
      const Usage& usage = request.summary.usage;
      request.summary.timings = request.watch.timings(usage.prompt_tokens - usage.cached_tokens);
      metrics_.record(request.summary);
      event.summary = std::move(request.summary);
    }
    try {
      request.callback(event);
    } catch (...) {
      metrics_.n_faults.add();
    }
  }
}

void StepLoop::publish() noexcept {
  for (Outgoing& outgoing : outbox_.events()) publish(outgoing);
  outbox_.truncate(0);
  end_broken();
}

// A finished request is forgotten before its last event, so that its callback may submit the next one.
void StepLoop::publish(Outgoing& outgoing) noexcept {
  ActiveRequest& request = *outgoing.request;
  TokenEvent& event = outgoing.event;
  if (request.breakdown) return;
  RequestTable::Owned finished;
  if (event.summary) {
    finished = requests_.take(request);
    const Usage& usage = request.summary.usage;
    request.summary.timings = request.watch.timings(usage.prompt_tokens - usage.cached_tokens);
    metrics_.record(request.summary);
    event.summary = std::move(request.summary);
    inbox_.forget(request);
  }
  if (event.finish) {
    metrics_.n_finished[static_cast<size_t>(*event.finish)].add();
    request.choice(event.choice).is_told = true;
  }
  try {
    request.callback(event);
  } catch (...) {
    metrics_.n_faults.add();
    if (finished == nullptr) fail(request);
  }
}

void StepLoop::report_step(const StepReport& report) noexcept {
  std::shared_ptr<const Engine::StepCallback> on_step;
  {
    const std::lock_guard lock(mutex_);
    on_step = on_step_;
  }
  if (!on_step || !*on_step || report.n_rows == 0) return;
  StepReport numbered = report;
  numbered.step = totals_.n_steps;
  try {
    (*on_step)(numbered);
  } catch (...) {
    metrics_.n_faults.add();
  }
}

}  // namespace candor::engine
