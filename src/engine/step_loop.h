#pragma once
// The engine itself: one thread that takes requests in, computes steps, chooses tokens and hands events out. Everything
// here belongs to that thread, except where a member says otherwise. Once as many requests as ever run at once have
// passed through, a step allocates nothing but what callers' constraints and callbacks do.

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "candor/engine.h"
#include "engine/active_request.h"
#include "engine/engine_metrics.h"
#include "engine/inbox.h"
#include "engine/loaded_model.h"
#include "engine/outbox.h"
#include "engine/prompt_viewer.h"
#include "engine/request_table.h"
#include "engine/speculator.h"
#include "engine/token_picker.h"
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
  void step();
  void take_in(InboxBatch& batch);
  void start(std::unique_ptr<ActiveRequest> request);
  void cancel(RequestId id);
  void cancel_all();
  void expire();
  void end_all(ActiveRequest& request, FinishReason reason);

  StepResult compute(const sched::StepPlan& plan);
  void pick_tokens(const sched::StepPlan& plan, const StepResult& result);
  sched::Outcome pick_next(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  sched::Outcome pick_first(ActiveRequest& request, const sched::PlannedSlice& slice, const StepResult& result);
  Picked pick_for(ActiveRequest& request, int32_t choice, const sched::PlannedSlice& slice, int32_t n_right,
                  const StepResult& result);
  PickInput input_for(const sched::PlannedSlice& slice, int32_t n_right, const backend::LogitsView& logits) const;
  Picked end_with_prompt(ActiveRequest& request, TokenEvent& event);
  void fork_choices();

  // step_loop_beams.cpp
  void begin_beams(ActiveRequest& request);
  sched::Outcome pick_beam(ActiveRequest& request, const sched::PlannedSlice& slice, const backend::LogitsView& logits);
  void advance_beams();
  void retire(ActiveRequest& request, SequenceId sequence);
  void grow_beams(ActiveRequest& request);
  Beam continue_beam(ActiveRequest& request, Beam& parent, bool is_last);
  bool accept_token(Beams& beams, int32_t live, TokenId token, Beam& beam);
  void end_beams(ActiveRequest& request);
  void publish_answer(ActiveRequest& request, int32_t choice, const sample::BeamAnswer& answer);
  FinishReason reason_of(const ActiveRequest& request, const sample::BeamAnswer& answer, const TokenEvent& event) const;

  void end_choice(ActiveRequest& request, TokenEvent& event, FinishReason reason);
  void count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows);
  void publish();
  void record(const StepReport& report);

  // Constant after construction.
  LoadedModel& loaded_;
  Inbox& inbox_;
  MetricStore& metrics_;
  const obs::Clock& clock_;
  sched::StepBudget budget_;

  // Engine thread only.
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
  Outbox outbox_;
  EngineStats totals_;
  int64_t step_began_ns_ = 0;
  int64_t token_time_ns_ = 0;  // when this step's logits were there
  int32_t n_finished_now_ = 0;

  // Guarded by mutex_.
  mutable std::mutex mutex_;
  EngineStats stats_;
  std::shared_ptr<const Engine::StepCallback> on_step_;
};

}  // namespace candor::engine
