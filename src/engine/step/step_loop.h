#pragma once
// The engine itself: one thread that takes requests in, and computes step after step. Each one is planned (Scheduler),
// computed (ModelRunner), its tokens are chosen (Chooser), the plan is committed, and events are published (Publisher);
// drafts are proposed before it (Speculator). Where a device computes behind the thread's back, the texts of a step are
// made (LateTexts) and its events published while the next one is computed. Everything here belongs to that thread,
// except where a member says otherwise. Once as many requests as ever run at once have passed through, a step allocates
// nothing but what callers' constraints and callbacks do.
//
// An exception ends the request that it came from with an error (Faults); where it came from what all share, all
// requests, and the scheduler begins anew.

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "candor/event.h"
#include "candor/info.h"
#include "engine/disk/disk_tier.h"
#include "engine/images/image_store.h"
#include "engine/open/loaded_model.h"
#include "engine/request/active_request.h"
#include "engine/request/adapter_registry.h"
#include "engine/request/inbox.h"
#include "engine/request/request_table.h"
#include "engine/step/chooser.h"
#include "engine/step/endings.h"
#include "engine/step/engine_metrics.h"
#include "engine/step/faults.h"
#include "engine/step/late_masks.h"
#include "engine/step/late_texts.h"
#include "engine/step/model_runner.h"
#include "engine/step/outbox.h"
#include "engine/step/publisher.h"
#include "engine/step/speculator.h"
#include "engine/step/step_stats.h"
#include "engine/step/token_picker.h"
#include "obs/clock.h"
#include "sample/row_asks.h"
#include "sched/scheduler.h"
#include "sched/scheduler_options.h"
#include "sched/step_plan.h"

namespace candor::engine {

class StepLoop {
 public:
  // Borrows all; they outlive the loop.
  StepLoop(LoadedModel& loaded, Inbox& inbox, AdapterRegistry& adapters, MetricStore& metrics, const obs::Clock& clock,
           std::shared_ptr<prefix_store::Store> store, ImageStore* images = nullptr);

  // Runs until the inbox is closed, then ends what is left with kCancelled.
  void run();

  // Engine thread.
  int64_t begin_saving() { return disk_.begin_saving(scheduler_.blocks()); }

  // Any thread.
  DiskCacheStats disk_cache() const { return disk_.stats(); }
  EngineStats stats() const { return stats_.stats(); }
  void on_step(StepCallback callback) { stats_.on_step(std::move(callback)); }

 private:
  // Requests come and go.
  int64_t patience_ns() const;
  void free_adapters();
  void take_in(InboxBatch& batch);
  void start(std::unique_ptr<ActiveRequest>& request);
  bool waits_for_images(ActiveRequest& request);
  void begin_computing(ActiveRequest& request);
  void advance_images();
  bool waits_for_disk(const ActiveRequest& request);
  void schedule(ActiveRequest& request);
  void advance_disk();
  void expire(int64_t now_ns);
  void end(ActiveRequest& request, FinishReason reason);
  void end_all();
  void refuse(std::unique_ptr<ActiveRequest> request) noexcept;

  // A step.
  void turn();
  StepReport step(int64_t began_ns);
  std::span<const float> vectors_of(const sched::StepPlan& plan);
  void propose_drafts() noexcept;
  void watch_rows(const sched::StepPlan& plan, int64_t began_ns);
  void watch_attention(const sched::StepPlan& plan);
  void watch_prompts(const sched::StepPlan& plan);
  void publish_unless_later(const StepReport& report) noexcept;
  void publish() noexcept;

  // Where a step broke.
  void break_down(InboxBatch& batch) noexcept;
  void end_broken() noexcept;
  void begin_anew();

  // Constant after construction.
  const sched::SchedulerOptions scheduler_options_;
  const sched::StepBudget budget_;
  const bool publishes_behind_;  // the launch of the next step
  LoadedModel& loaded_;
  Inbox& inbox_;
  AdapterRegistry& adapters_;
  const obs::Clock& clock_;
  ImageStore* images_;  // nullptr: the model takes none

  // Engine thread only.
  LateMasks masks_;
  sched::Scheduler scheduler_;
  DiskTier disk_;
  std::vector<RequestId> awaiting_images_;  // requests that begin when their images are encoded
  RequestTable requests_;
  Outbox outbox_;
  StepStats stats_;
  Faults faults_;
  Endings endings_;
  Speculator speculator_;
  ModelRunner runner_;
  TokenPicker picker_;
  LateTexts texts_;
  sample::RowAsks asks_;
  Chooser chooser_;
  Publisher publisher_;
  std::vector<float> vectors_;  // of images, in a step
  std::vector<int32_t> looking_rows_;
  int64_t expected_ns_ = 0;  // of the step before
  bool is_saving_ = false;   // there is more to write, and room for it
  bool is_stuck_ = false;    // nothing can be computed until a mask is there
};

}  // namespace candor::engine
