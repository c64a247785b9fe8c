#pragma once
// Exceptions that come up while the engine works for a request: they end that request with an error, and nothing else.
// Nothing here takes memory, so that it works where memory ran out. Engine thread only.

#include <cstdint>

#include "engine/request/active_request.h"
#include "engine/request/request_table.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/outbox.h"
#include "engine/step/step_stats.h"
#include "obs/clock.h"

namespace candor::engine {

class Faults {
 public:
  // All are borrowed.
  Faults(Outbox& outbox, MetricStore& metrics, StepStats& stats, const obs::Clock& clock)
      : outbox_(outbox), metrics_(metrics), stats_(stats), clock_(clock) {}

  // Runs body() for the request, whatever it throws; then the events that it made are gone, and the request has broken.
  // False where it did not come to its end, or the request had broken before.
  template <class Body>
  bool contain(ActiveRequest& request, const Body& body) noexcept {
    if (request.breakdown) return false;
    const size_t n_events = outbox_.n_events();
    try {
      body();
      return true;
    } catch (...) {
      take_back(request, n_events);
      return false;
    }
  }

  // One exception was met.
  void count() noexcept { metrics_.n_faults.add(); }
  // REQUIRES, both: inside of a catch block. The request has broken, and is to be ended; a refused one never came in.
  void fail(ActiveRequest& request) noexcept;
  void refuse(ActiveRequest& request) noexcept;

  bool has_broken() const noexcept { return n_broken_ > 0; }
  // A request that has broken; nullptr where there is none. REQUIRES: the one before has left the table.
  ActiveRequest* next_broken(RequestTable& requests) noexcept;

 private:
  void take_back(ActiveRequest& request, size_t n_events) noexcept;

  Outbox& outbox_;
  MetricStore& metrics_;
  StepStats& stats_;
  const obs::Clock& clock_;
  int32_t n_broken_ = 0;
};

}  // namespace candor::engine
