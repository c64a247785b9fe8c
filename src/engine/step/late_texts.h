#pragma once
// Text of tokens that are chosen, while a device computes the step behind them: detokenising and the search for stop
// strings wait for its launch. A choice whose text turns out to end with a stop string then has a row too many in that
// step: its last event is held until the step is there, and nothing of the row is used or counted. Choices with a
// constraint or drafts do not wait, nor do last tokens (max_tokens, full context). Engine thread only.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/step/endings.h"
#include "engine/step/faults.h"
#include "engine/step/outbox.h"
#include "engine/step/pick_input.h"
#include "engine/step/token_picker.h"
#include "sched/scheduler.h"

namespace candor::engine {

class LateTexts {
 public:
  // All are borrowed. is_on: steps are computed behind the engine thread's back.
  LateTexts(bool is_on, TokenPicker& picker, Outbox& outbox, Endings& endings, sched::Scheduler& scheduler,
            Faults& faults)
      : is_on_(is_on), picker_(picker), outbox_(outbox), endings_(endings), scheduler_(scheduler), faults_(faults) {}

  // Whether the text of the next token may wait.
  bool may_wait(ActiveRequest& request, const PickInput& input) const;
  // The token of the outbox's newest event.
  void add(ActiveRequest& request, const PickInput& input);

  // Makes what waits, while a step is computed that these sequences may be part of.
  void finish_behind() noexcept;
  // The same between two steps: texts that end leave the scheduler at once.
  void finish() noexcept;
  // After the step, of a choice that has a row in it: whether it had ended before. Then its last event goes out.
  bool take_ended(ActiveRequest& request, int32_t choice);
  // After the step was committed: those that ended without a row in it.
  void end_others() noexcept;
  // After an exception in a step.
  void forget() noexcept;

 private:
  struct Waiting {
    ActiveRequest* request;
    PickInput input;
    size_t event;  // in the outbox
  };
  struct Held {
    ActiveRequest* request;
    TokenEvent event;
  };
  bool is_stopped(const Waiting& waiting);
  void hold(const Waiting& waiting);
  void end(ActiveRequest& request, TokenEvent& event);

  const bool is_on_;
  TokenPicker& picker_;
  Outbox& outbox_;
  Endings& endings_;
  sched::Scheduler& scheduler_;
  Faults& faults_;
  std::vector<Waiting> waiting_;
  std::vector<Held> held_;
};

}  // namespace candor::engine
