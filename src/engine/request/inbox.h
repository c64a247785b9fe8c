#pragma once
// A queue of what callers ask of the engine thread, in order of arrival, bounded by the number of choices in work.
// Every method may be called from any thread; wait() belongs to the engine thread.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "candor/info.h"
#include "engine/request/active_request.h"
#include "engine/request/prompt_meter.h"

namespace candor::engine {

struct InboxBatch {
  std::vector<std::unique_ptr<ActiveRequest>> submitted{};
  std::vector<RequestId> cancelled{};
  std::vector<std::function<void()>> tasks{};
};

class Inbox {
 public:
  explicit Inbox(int32_t max_in_work) : max_in_work_(max_in_work) {}

  // One request that is being read, and will be submitted behind this.
  class Reading {
   public:
    explicit Reading(Inbox& inbox) : inbox_(inbox) { ++inbox_.n_reading_; }
    ~Reading() { --inbox_.n_reading_; }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    Inbox& inbox_;
  };

  // kOverloaded when no room is left for one answer more beside n_coming others and what is being read.
  Result<void> check_room(int32_t n_coming) const;
  // Numbers the request, leaving a number for each of its sequences, and queues it; kOverloaded when as many as are
  // allowed are in work.
  Result<RequestId> submit(std::unique_ptr<ActiveRequest> request);
  // False when the request is not in work.
  bool cancel(RequestId id);
  // nullopt when the request is not in work.
  std::optional<PromptProgress> prompt_progress(RequestId id) const;
  // Runs on the engine thread between two steps; it throws nothing. False: the inbox is closed.
  bool run_task(std::function<void()> task);
  // Nothing may be submitted any more; wakes the engine thread.
  void close();
  // Something else came that the engine thread may be waiting for.
  void wake();

  // Moves everything that arrived into `batch`, which is cleared first; blocks until there is something or wake() was
  // called since the last time, but at most so long; kNever: as long as it takes. False once the inbox is closed.
  bool wait(InboxBatch& batch, int64_t most_ns);
  // The request left the engine.
  void forget(const ActiveRequest& request);

 private:
  // REQUIRES: mutex_ is held.
  Result<void> room_for(int32_t n_sequences) const;

  // Constant after construction.
  const int32_t max_in_work_;

  std::atomic<int32_t> n_reading_{0};
  // Guarded by mutex_.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  InboxBatch arrived_;
  std::unordered_map<RequestId, std::shared_ptr<const PromptMeter>> in_work_;
  int32_t n_choices_ = 0;  // of those in work
  RequestId next_id_ = 1;
  bool is_closed_ = false;
  bool is_woken_ = false;
};

}  // namespace candor::engine
