#pragma once
// The engine itself: one thread that takes requests in, computes steps, chooses tokens and hands events out. Everything
// here belongs to that thread, except where a member says otherwise.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "candor/engine.h"
#include "engine/active_request.h"
#include "engine/inbox.h"
#include "engine/loaded_model.h"
#include "obs/clock.h"
#include "sample/sampler.h"
#include "sched/scheduler.h"

namespace candor::engine {

class StepLoop {
 public:
  // Borrows all three; they outlive the loop.
  StepLoop(LoadedModel& loaded, Inbox& inbox, const obs::Clock& clock);

  // Runs until the inbox is closed, then ends what is left with kCancelled.
  void run();

  // Any thread.
  EngineStats stats() const;
  void on_step(Engine::StepCallback callback);

 private:
  using Requests = std::map<SequenceId, std::unique_ptr<ActiveRequest>>;

  void step();
  void take_in(InboxBatch& batch);
  void start(std::unique_ptr<ActiveRequest> request);
  void cancel(SequenceId id);
  void cancel_all();

  backend::LogitsView compute(const sched::StepPlan& plan);
  void pick_tokens(const sched::StepPlan& plan, const backend::LogitsView& logits);
  sched::Outcome pick_one(const sched::PlannedSlice& slice, std::span<const float> logits);
  Expected<void> choose(ActiveRequest& request, const sched::Sequence& sequence, std::span<const float> logits);
  std::optional<FinishReason> add_token(ActiveRequest& request, const sched::Sequence& sequence, TokenEvent& event);
  std::optional<FinishReason> end_by_token(const ActiveRequest& request, TokenEvent& event) const;
  void finish(ActiveRequest& request, TokenEvent& event, FinishReason reason);
  void count_usage(ActiveRequest& request, const sched::Sequence& sequence, int32_t n_rows);
  void publish();
  void record(const StepReport& report);

  // Constant after construction.
  LoadedModel& loaded_;
  Inbox& inbox_;
  const obs::Clock& clock_;
  sched::StepBudget budget_;

  // Engine thread only.
  sched::Scheduler scheduler_;
  Requests requests_;
  sample::Sampler sampler_;
  sample::Pick pick_;
  constrain::TokenMask mask_;
  std::vector<sched::Outcome> outcomes_;
  std::vector<TokenId> picked_;
  struct Outgoing {
    ActiveRequest* request = nullptr;  // of requests_, until publish() forgets it
    TokenEvent event{};
  };
  std::vector<Outgoing> outbox_;
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
