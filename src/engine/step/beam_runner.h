#pragma once
// Runs beam searches: each text of a beam is a sequence of the scheduler. When all of a search's sequences have their
// logits, the best continuations fork and sequences without one are removed. The texts become events when the search is
// over; end_answer() then names why each one ended. Engine thread only.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/request/beams.h"
#include "engine/step/chooser_parts.h"
#include "engine/step/faults.h"
#include "engine/step/model_runner.h"
#include "engine/step/pick_input.h"
#include "obs/clock.h"
#include "sample/beam_scorer.h"
#include "sched/step_plan.h"

namespace candor::engine {

class BeamRunner {
 public:
  // The clock is borrowed as well.
  BeamRunner(const ChooserParts& parts, const obs::Clock& clock) : parts_(parts), clock_(clock) {}

  // Before the request is scheduled.
  static void begin(ActiveRequest& request);
  // Ranks what the slice's row offers.
  sched::Outcome choose(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  // Between two steps, of a row that was kept. False where its mask is still not there.
  bool choose_kept(ActiveRequest& request, SequenceId sequence, int64_t now_ns);
  // Searches that have all their rows, the last of them at now_ns, take a step.
  void advance(Faults& faults, int64_t now_ns);
  // After an exception in a step.
  void forget_step() noexcept { to_advance_.clear(); }

 private:
  bool rank(ActiveRequest& request, int32_t live, PickInput input);
  void advance(ActiveRequest& request, int64_t now_ns);
  void retire(ActiveRequest& request, SequenceId sequence);
  void grow(ActiveRequest& request);
  Beam continue_beam(ActiveRequest& request, Beam& parent, bool is_last);
  bool accept(Beams& beams, int32_t live, TokenId token, Beam& beam);
  void end(ActiveRequest& request);
  void publish_answer(ActiveRequest& request, int32_t choice, const sample::BeamAnswer& answer);
  void end_answer(ActiveRequest& request, const sample::BeamAnswer& answer, TokenEvent& event,
                  std::optional<FinishReason> reason);

  ChooserParts parts_;
  const obs::Clock& clock_;
  std::vector<ActiveRequest*> to_advance_;  // all their beams have a row
};

}  // namespace candor::engine
