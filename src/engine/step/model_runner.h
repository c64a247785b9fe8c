#pragma once
// Computes a plan on the model: copies blocks that are about to be written, runs the rows, and gives the logits.
// Engine thread only.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "engine/open/loaded_model.h"
#include "obs/clock.h"
#include "sched/step_plan.h"

namespace candor::engine {

class ModelRunner;

// Of one step; valid until the next.
struct StepResult {
  backend::LogitsView logits{};
  backend::RowsView hidden{};  // rows as in logits
  int64_t ready_ns = 0;        // when they were there
  const sched::StepPlan* plan = nullptr;
  std::span<const float> vectors{};
  ModelRunner* runner = nullptr;

  // Where that row of logits looked (backend/wrap/attention_watch.h); empty where nobody wanted to know.
  std::vector<double> attention_of(int32_t out_row) const;
  // Where the numbers of the step broke, behind the message of an error that they caused.
  std::string broken_part() const;
};

class ModelRunner {
 public:
  // All are borrowed.
  ModelRunner(LoadedModel& loaded, const obs::Clock& clock) : loaded_(loaded), clock_(clock) {}

  // REQUIRES: a plan that is not empty. vectors: of its image rows, until the next run.
  StepResult run(const sched::StepPlan& plan, std::span<const float> vectors = {});

  // Of the last run.
  int64_t began_ns() const { return began_ns_; }
  int64_t ready_ns() const { return ready_ns_; }

 private:
  friend struct StepResult;

  LoadedModel& loaded_;
  const obs::Clock& clock_;
  int64_t began_ns_ = 0;
  int64_t ready_ns_ = 0;
};

}  // namespace candor::engine
