#pragma once
// Turns the logits of a step into one outcome for each sequence in it: ChoiceRunner chooses the next tokens of ordinary
// requests, BeamRunner ranks the continuations of beam searches. An exception on the way ends only the request that it
// came from. Engine thread only; scratch memory is reused.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/active_request.h"
#include "engine/request/request_table.h"
#include "engine/step/beam_runner.h"
#include "engine/step/choice_runner.h"
#include "engine/step/chooser_parts.h"
#include "engine/step/faults.h"
#include "engine/step/model_runner.h"
#include "obs/clock.h"
#include "sched/step_plan.h"

namespace candor::engine {

class Chooser {
 public:
  // All are borrowed. max_rows: with logits, of a step.
  Chooser(const ChooserParts& parts, RequestTable& requests, Faults& faults, const obs::Clock& clock, int32_t max_rows);

  // Before the request is scheduled.
  void begin(ActiveRequest& request);
  // While a step is computed whose logits a device has: collects what the choices will ask of them.
  void ask(const sched::StepPlan& plan, const StepResult& result) noexcept;
  // One outcome for each slice that has logits, in their order; valid until the next call.
  std::span<const sched::Outcome> choose(const sched::StepPlan& plan, const StepResult& result);
  // After the outcomes were committed: prompts of several choices fork, beam searches take their step, and masks of the
  // next tokens are asked for.
  void branch();
  // Between two steps: each sequence whose mask came meanwhile gets its token, and takes part in the next one.
  void choose_kept();
  // After an exception in a step.
  void forget_step() noexcept;

 private:
  ChooserParts parts_;
  RequestTable& requests_;
  Faults& faults_;
  const obs::Clock& clock_;
  ChoiceRunner choices_;
  BeamRunner beams_;
  std::vector<sched::Outcome> outcomes_;
  int64_t ready_ns_ = 0;  // when the newest logits were ready
};

}  // namespace candor::engine
