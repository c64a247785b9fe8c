#include "engine/step/publisher.h"

#include <cstdint>
#include <utility>

#include "base/fault.h"
#include "engine/request/receipt_notes.h"

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
  while (i >= 0 && request.choice(i).is_published) --i;
  return i;
}

}  // namespace

void Publisher::publish() noexcept {
  for (Outgoing& outgoing : outbox_.events()) {
    if (outgoing.request != nullptr) publish(outgoing);
  }
  outbox_.truncate(0);
}

void Publisher::sum_up(ActiveRequest& request, TokenEvent& event) noexcept {
  const Usage& usage = request.summary.usage;
  request.summary.timings = request.watch.timings(usage.prompt_tokens - usage.cached_tokens);
  metrics_.record(request.summary);
  event.summary = std::move(request.summary);
}

// A finished request is forgotten before its last event, so that its callback may submit the next one.
void Publisher::publish(Outgoing& outgoing) noexcept {
  ActiveRequest& request = *outgoing.request;
  TokenEvent& event = outgoing.event;
  if (request.breakdown) return;
  RequestTable::Owned finished;
  if (event.summary) {
    finished = requests_.take(request);
    sum_up(request, event);
    inbox_.forget(request);
  }
  if (event.finish) {
    metrics_.n_finished[static_cast<size_t>(*event.finish)].add();
    request.choice(event.choice).is_published = true;
  }
  try {
    if (request.receipt) note_event(request, event);
    request.callback(event);
  } catch (...) {
    faults_.count();
    if (finished == nullptr) faults_.fail(request);
  }
}

void Publisher::publish_breakdown(RequestTable::Owned request) noexcept {
  inbox_.forget(*request);
  const int32_t last = last_untold(*request);
  for (int32_t i = 0; i <= last; ++i) {
    if (request->choice(i).is_published) continue;
    TokenEvent event;
    event.request = request->id;
    event.choice = i;
    event.finish = FinishReason::kError;
    event.error = copy_of(*request->breakdown);
    request->summary.receipt.reset();
    metrics_.n_finished[static_cast<size_t>(FinishReason::kError)].add();
    if (i == last) sum_up(*request, event);
    try {
      request->callback(event);
    } catch (...) {
      faults_.count();
    }
  }
}

}  // namespace candor::engine
