#pragma once
// The steps of a served engine, kept for the page: while somebody looks, every fourth with the times of its operations.
// Outlives its engine.

#include <cstdint>
#include <memory>

#include "backend/wrap/timed_backend.h"
#include "candor/engine.h"
#include "obs/clock.h"
#include "serve/core/step_history.h"

namespace candor::apps {

class MeasuredSteps {
 public:
  MeasuredSteps();

  // As Engine::open; once.
  Result<std::unique_ptr<Engine>> open(const EngineOptions& options, const LoadProgress& progress);
  // After each step of that engine, on its thread.
  void take(const StepReport& report);

  const serve::StepHistory& history() const { return history_; }

 private:
  const obs::SteadyClock clock_;
  backend::TimedBackend* timed_ = nullptr;  // the engine's; touched on its thread, between its steps
  bool is_measuring_ = false;               // as timed_ was told of the step that comes
  int64_t n_steps_ = 0;
  serve::StepHistory history_;
};

}  // namespace candor::apps
