#pragma once
// The engine's counters and histograms. Written by the engine thread and by submit(), read by any thread.

#include <array>

#include "candor/drafts.h"
#include "candor/event.h"
#include "candor/metrics.h"
#include "obs/metrics.h"

namespace candor::engine {

struct MetricStore {
  obs::Histogram queue_ns, ttft_ns, e2e_ns, itl_ns, tpot_ns, step_ns;
  obs::Histogram prompt_tokens, completion_tokens, step_rows;
  std::array<obs::Counter, kFinishReasons> n_finished;
  obs::Counter n_refused, n_overloaded, n_faults;
  struct Drafts {
    obs::Counter n_steps, n_drafted, n_accepted, plain_ns, added_ns, saved_ns;
  };
  std::array<Drafts, kDraftSources> drafts;

  // A request ended.
  void record(const RequestSummary& summary);
  EngineMetrics snapshot() const;
};

}  // namespace candor::engine
