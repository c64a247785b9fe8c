#pragma once
// Ends choices and requests: marks the last event of a choice, removes its sequence from the scheduler, and counts what
// the request has used. It does not decide that a choice ends: the stop rules do, in TokenPicker (token_picker.h) for
// ordinary choices and in BeamRunner::end_answer() for beam searches. Engine thread only. Takes no memory except for
// events.

#include <cstdint>

#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/step/late_masks.h"
#include "engine/step/outbox.h"
#include "engine/step/step_stats.h"
#include "obs/clock.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"

namespace candor::engine {

class Endings {
 public:
  // All are borrowed.
  Endings(sched::Scheduler& scheduler, LateMasks& masks, Outbox& outbox, StepStats& stats, const obs::Clock& clock)
      : scheduler_(scheduler), masks_(masks), outbox_(outbox), stats_(stats), clock_(clock) {}

  // The event becomes the choice's last, and the request's where no other choice is open.
  void end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason);
  // Every choice that is still open ends.
  void end_choices(ActiveRequest& request, FinishReason reason);
  // Every choice ends with the error.
  void fail_choices(ActiveRequest& request, const Error& error);

  // The sequence ends with a step that computed n_rows of it.
  void count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows);
  void leave_scheduler(ActiveRequest& request);
  // An exception left the scheduler in no state to be asked: nobody leaves it until it begins anew.
  void abandon_scheduler() noexcept { is_abandoned_ = true; }
  void begin_anew() noexcept { is_abandoned_ = false; }
  bool is_abandoned() const { return is_abandoned_; }

 private:
  sched::Scheduler& scheduler_;
  LateMasks& masks_;
  Outbox& outbox_;
  StepStats& stats_;
  const obs::Clock& clock_;
  bool is_abandoned_ = false;
};

}  // namespace candor::engine
