#pragma once
// Chooses the tokens of a request's choices, each of which is a text of its own: the token behind every row that has
// logits, accepted drafts included, and the first tokens of choices that share one prompt. Engine thread only.

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "candor/event.h"
#include "engine/request/active_request.h"
#include "engine/step/chooser_parts.h"
#include "engine/step/faults.h"
#include "engine/step/model_runner.h"
#include "engine/step/pick_input.h"
#include "engine/step/prompt_viewer.h"
#include "engine/step/token_picker.h"
#include "sched/step_plan.h"

namespace candor::engine {

class ChoiceRunner {
 public:
  // max_rows: with logits, of a step.
  ChoiceRunner(const ChooserParts& parts, int32_t max_rows);

  void begin_step() { picked_.clear(); }
  // While the step is computed, for logits that a device has: what the choices of the slice's rows want to know.
  void ask(ActiveRequest& request, const sched::PlannedSlice& slice);
  // The same of what its rows show of their prompt.
  void ask_prompt(const ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  // What the slice's rows show of their prompt.
  void show_prompt(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  // The outcome's tokens are valid until begin_step().
  sched::Outcome choose(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  // Between two steps, of a row that was kept. False where its mask is still not there.
  bool choose_kept(ActiveRequest& request, SequenceId sequence, int64_t now_ns);
  // Choices whose first tokens were chosen go on in sequences of their own.
  void fork_choices(Faults& faults);
  // After an exception in a step.
  void forget_step() noexcept { to_fork_.clear(); }

 private:
  sched::Outcome choose_next(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  sched::Outcome choose_first(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  void ask_row(ActiveRequest& request, PickInput input, int32_t out_row);
  bool can_choose(ActiveRequest& request, const PickInput& input);
  Picked choose_row(ActiveRequest& request, const PickInput& input, const sched::PlannedSlice& slice,
                    const StepResult& result);
  Picked pick(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  Picked pick_ahead(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  PickInput input_for(ActiveRequest& request, int32_t choice, const sched::PlannedSlice& slice, int32_t n_accepted,
                      const StepResult& result) const;
  Picked end_with_prompt(ActiveRequest& request, TokenEvent& event);
  void fork(ActiveRequest& request);

  ChooserParts parts_;
  PromptViewer viewer_;
  std::vector<TokenId> picked_;          // what the outcomes look into
  std::vector<TokenId> text_;            // of a sequence and its accepted drafts
  std::vector<ActiveRequest*> to_fork_;  // their prompt was read in this step
};

}  // namespace candor::engine
