#pragma once
// The engine itself: one thread that takes requests in, computes steps, chooses tokens and hands events out. Everything
// here belongs to that thread, except where a member says otherwise. Once as many requests as ever run at once have
// passed through, a step allocates nothing but what callers' constraints and callbacks do.
//
// Masks are asked for as soon as a token was chosen, and computed beside the next step. A step waits for late ones
// within a small budget; then the row's logits are kept and its sequence holds until the mask is there.
//
// An exception ends the request that it came from with an error (step_loop_faults.cpp); where it came from what all
// share, all requests, and the scheduler begins anew.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "candor/engine.h"
#include "constrain/mask_worker.h"
#include "engine/open/loaded_model.h"
#include "engine/request/active_request.h"
#include "engine/request/inbox.h"
#include "engine/request/request_table.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/outbox.h"
#include "engine/step/prompt_viewer.h"
#include "engine/step/speculator.h"
#include "engine/step/token_picker.h"
#include "obs/clock.h"
#include "sched/scheduler.h"

namespace candor::engine {

class StepLoop {
 public:
  // Borrows all; they outlive the loop.
  StepLoop(LoadedModel& loaded, Inbox& inbox, MetricStore& metrics, const obs::Clock& clock);

  // Runs until the inbox is closed, then ends what is left with kCancelled.
  void run();

  // Any thread.
  EngineStats stats() const;
  void on_step(Engine::StepCallback callback);

 private:
  int64_t patience_ns() const;
  void step();
  bool compute_step(StepReport& report);
  void take_in(InboxBatch& batch);
  void start(std::unique_ptr<ActiveRequest>& request);
  void cancel(RequestId id);
  void cancel_all();
  void expire();
  void end_all(ActiveRequest& request, FinishReason reason);
  void leave_scheduler(ActiveRequest& request);

  StepResult compute(const sched::StepPlan& plan);
  void pick_tokens(const sched::StepPlan& plan, const StepResult& result);
  sched::Outcome pick_token(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  sched::Outcome pick_next(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  sched::Outcome pick_first(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  Picked pick_for(ActiveRequest& request, int32_t choice, const sched::PlannedSlice& slice, int32_t n_right,
                  const StepResult& result);
  Picked pick_row(ActiveRequest& request, const PickInput& input, TokenEvent& event);
  PickInput input_for(const sched::PlannedSlice& slice, int32_t n_right, const backend::LogitsView& logits) const;
  // Where the numbers of a step broke, behind the message of an error that they caused.
  std::string broken_place(const StepResult& result);
  PickInput input_for(const sched::Sequence& sequence, int32_t n_right) const;
  static PickInput of_choice(ActiveRequest& request, int32_t choice, PickInput input);
  Picked end_with_prompt(ActiveRequest& request, TokenEvent& event);
  void fork_choices();
  void fork_choices(ActiveRequest& request);

  // step_loop_masks.cpp
  bool can_pick(ActiveRequest& request, const PickInput& input);
  bool has_mask(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  void want_mask(const std::shared_ptr<constrain::MaskedConstraint>& constraint, const OutputText& text);
  void send_masks();
  void keep(SequenceId sequence, KeptRow& row, const PickInput& input);
  void pick_kept();
  bool pick_kept_choice(ActiveRequest& request, SequenceId sequence);
  bool rank_kept_beam(ActiveRequest& request, SequenceId sequence);

  // step_loop_faults.cpp
  // Runs body() for the request, whatever it throws. False where it did not come to its end.
  template <class Body>
  bool contain(ActiveRequest& request, const Body& body) noexcept {
    if (request.breakdown) return false;
    const size_t n_events = outbox_.n_events();
    try {
      body();
      return true;
    } catch (...) {
      take_back(request, n_events);
      return false;
    }
  }
  void take_back(ActiveRequest& request, size_t n_events) noexcept;
  void propose_guesses() noexcept;
  void fail(ActiveRequest& request) noexcept;
  void refuse(std::unique_ptr<ActiveRequest> request) noexcept;
  void break_down(InboxBatch& batch) noexcept;
  void begin_anew();
  void end_broken() noexcept;
  void tell_of_breakdown(ActiveRequest& request) noexcept;
  void publish() noexcept;
  void publish(Outgoing& outgoing) noexcept;
  void report_step(const StepReport& report) noexcept;

  // step_loop_beams.cpp
  void begin_beams(ActiveRequest& request);
  sched::Outcome pick_beam(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  bool rank_beam(ActiveRequest& request, int32_t live, PickInput input);
  void advance_beams();
  void advance_beams(ActiveRequest& request);
  void retire(ActiveRequest& request, SequenceId sequence);
  void grow_beams(ActiveRequest& request);
  Beam continue_beam(ActiveRequest& request, Beam& parent, bool is_last);
  bool accept_token(Beams& beams, int32_t live, TokenId token, Beam& beam);
  void end_beams(ActiveRequest& request);
  void publish_answer(ActiveRequest& request, int32_t choice, const sample::BeamAnswer& answer);
  FinishReason reason_of(const ActiveRequest& request, const sample::BeamAnswer& answer, const TokenEvent& event) const;

  void end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason);
  void count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows);
  void count(const StepReport& report);
  void store_stats();

  // Constant after construction.
  LoadedModel& loaded_;
  Inbox& inbox_;
  MetricStore& metrics_;
  const obs::Clock& clock_;
  sched::StepBudget budget_;

  // Engine thread only.
  constrain::MaskWorker masks_;
  sched::Scheduler scheduler_;
  RequestTable requests_;
  Speculator speculator_;
  TokenPicker picker_;
  PromptViewer viewer_;
  std::vector<sched::Outcome> outcomes_;
  std::vector<TokenId> picked_;             // what the outcomes look into
  std::vector<TokenId> text_;               // of a sequence and the guesses of it that came true
  std::vector<ActiveRequest*> to_fork_;     // their prompt was read in this step
  std::vector<ActiveRequest*> to_advance_;  // all their beams have a row
  std::vector<SequenceId> kept_;            // they hold: a row of theirs waits for its mask
  Outbox outbox_;
  EngineStats totals_;
  int64_t step_began_ns_ = 0;
  int64_t token_time_ns_ = 0;  // when this step's logits were there
  int64_t expected_ns_ = 0;    // of the step before
  int64_t accept_left_ns_ = 0;  // what this step may still spend on accepting tokens
  int32_t n_finished_now_ = 0;
  int32_t n_broken_ = 0;             // requests with a breakdown
  bool is_stuck_ = false;            // nothing can be computed until a mask is there
  bool needs_new_scheduler_ = false;

  // Guarded by mutex_.
  mutable std::mutex mutex_;
  EngineStats stats_;
  std::shared_ptr<const Engine::StepCallback> on_step_;
};

}  // namespace candor::engine
