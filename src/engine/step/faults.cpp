#include "engine/step/faults.h"

#include <algorithm>
#include <utility>

#include "base/fault.h"

namespace candor::engine {

void Faults::take_back(ActiveRequest& request, size_t n_events) noexcept {
  count();
  outbox_.truncate(n_events);
  fail(request);
}

void Faults::fail(ActiveRequest& request) noexcept {
  if (request.breakdown) return;
  request.breakdown = error_of_exception();
  ++n_broken_;
  if (std::exchange(request.n_open, 0) == 0) return;
  request.watch.on_end(clock_.now_ns());
  stats_.count_finished();
}

void Faults::refuse(ActiveRequest& request) noexcept {
  request.breakdown = error_of_exception();
  request.watch.on_end(clock_.now_ns());
  stats_.count_refused();
}

ActiveRequest* Faults::next_broken(RequestTable& requests) noexcept {
  if (n_broken_ == 0) return nullptr;
  --n_broken_;
  return std::ranges::find_if(requests, [](const auto& r) { return r->breakdown.has_value(); })->get();
}

}  // namespace candor::engine
