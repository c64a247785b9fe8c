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
#include "sample/row_asks.h"
#include "sched/step_plan.h"

namespace candor::engine {

class ModelRunner;

// Of one step; valid until the next.
struct StepResult {
  backend::DeviceLogits* device = nullptr;  // that has the logits; nullptr: the host has them
  int64_t ready_ns = 0;                     // when they were there
  const sched::StepPlan* plan = nullptr;
  std::span<const float> vectors{};
  ModelRunner* runner = nullptr;

  // Of the rows with logits, [V] and [D]. Valid until the next step.
  std::span<const float> logits(int32_t out_row) const;
  backend::LogitRow logit_row(int32_t out_row) const;
  // Its first n_vocab.
  backend::LogitRow logit_row(int32_t out_row, int32_t n_vocab) const;
  std::span<const float> hidden(int32_t out_row) const;
  // Logits of rows that are all read.
  void bring(int32_t first_row, int32_t n_rows) const;
  // Where that row of logits looked (backend/wrap/attention_watch.h); empty where nobody wanted to know.
  std::vector<double> attention_of(int32_t out_row) const;
  // Where the numbers of the step broke, behind the message of an error that they caused.
  std::string broken_part() const;
};

class ModelRunner {
 public:
  // All are borrowed.
  ModelRunner(LoadedModel& loaded, const obs::Clock& clock) : loaded_(loaded), clock_(clock) {}

  // REQUIRES: a plan that is not empty. vectors: of its image rows, until the next step.
  StepResult launch(const sched::StepPlan& plan, std::span<const float> vectors = {});
  // Until what was launched is computed. asks: of its logits, where a device has them.
  void wait(StepResult& result, sample::RowAsks& asks);

  // Of the last step.
  int64_t began_ns() const { return began_ns_; }
  int64_t ready_ns() const { return ready_ns_; }

 private:
  friend struct StepResult;

  LoadedModel& loaded_;
  const obs::Clock& clock_;
  // Of the last step.
  backend::StepTicket ticket_{};
  backend::LogitsView logits_{};
  backend::RowsView hidden_{};  // once somebody has asked for them
  int64_t began_ns_ = 0;
  int64_t ready_ns_ = 0;
};

}  // namespace candor::engine
