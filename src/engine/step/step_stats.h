#pragma once
// Counts what the steps did: the engine's totals, and a report of each step for the callback that the caller set with
// on_step(). The engine thread writes; stats() and on_step() may be called from any thread.

#include <cstdint>
#include <memory>
#include <mutex>

#include "candor/event.h"
#include "candor/info.h"
#include "engine/step/engine_metrics.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"
#include "sched/step_plan.h"

namespace candor::engine {

// When the parts of one step began, in nanoseconds of an obs::Clock.
struct StepTimes {
  int64_t began_ns = 0;
  int64_t planned_ns = 0;
  int64_t computed_ns = 0;
  int64_t ended_ns = 0;
};

// What a plan says of its step.
StepReport report_of(const sched::StepPlan& plan);

class StepStats {
 public:
  // The scheduler and the metrics are borrowed. n_layers: of the model.
  StepStats(const sched::Scheduler& scheduler, MetricStore& metrics, int64_t n_layers);

  void count_submitted() { ++totals_.n_submitted; }
  // Counts a request whose last choice ended in this step; one that was never admitted.
  void count_finished() noexcept;
  void count_refused() noexcept { ++totals_.n_finished; }
  void count_times(StepReport& report, const StepTimes& times);
  // Adds to the usage of a sequence that leaves after n_rows rows more than it has counted.
  void count_left(Usage& usage, const sched::Sequence& sequence, int32_t n_rows);
  // The step is over: counts it, shows the totals, and reports it. What the callback throws is counted.
  void finish(StepReport report) noexcept;
  // Shows the totals as they are.
  void store() noexcept;

  // Any thread.
  EngineStats stats() const;
  void on_step(StepCallback callback);

 private:
  void report(const StepReport& report) noexcept;

  // Constant after construction.
  const sched::Scheduler& scheduler_;
  MetricStore& metrics_;
  const int64_t n_layers_;

  // Engine thread only.
  EngineStats totals_;
  int32_t n_finished_now_ = 0;

  // Guarded by mutex_.
  mutable std::mutex mutex_;
  EngineStats stats_;
  std::shared_ptr<const StepCallback> on_step_;
};

}  // namespace candor::engine
