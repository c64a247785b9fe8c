#pragma once
// The threads that do what the network thread must not: JSON, templates, tokenising, constraints. New work waits in a
// bounded queue that is shared fairly by API key: keys take turns, and large tasks leave one thread to the others. Work
// of requests that are already inside (bounded by their number) goes first, and has one thread more that does nothing
// else: streams go on whatever new work costs. What throws ends its task alone, and is noted.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "serve/http/fair_budget.h"
#include "serve/http/faults.h"

namespace candor::http {

// Work of a request that is inside. It queues without taking memory.
class Continuation {
 public:
  virtual ~Continuation() = default;
  // On a worker.
  virtual void go_on() noexcept = 0;

 private:
  friend class WorkerPool;
  std::shared_ptr<Continuation> next_;  // guarded by the pool's mutex
};

struct WorkerOptions {
  int32_t n_threads = 2;
  size_t max_waiting = 1024;
  size_t n_keys = 0;
};

class WorkerPool {
 public:
  struct Task {
    std::function<void()> run{};
    std::function<void()> drop{};  // instead, where the pool ends first
    int32_t key = -1;
    bool is_large = false;
  };

  // The faults are borrowed.
  WorkerPool(const WorkerOptions& options, Faults& faults);
  // Does what is inside, drops what is new, joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the key's share of the queue is full.
  bool try_post(Task task);
  // REQUIRES: it is not queued.
  void post_first(std::shared_ptr<Continuation> work) noexcept;
  // Drops what no thread has begun.
  void drop_waiting() noexcept;

  Faults& faults() { return faults_; }

 private:
  struct Waiting {
    Task task{};
    FairBudget::Share place{};
    uint64_t number = 0;
  };
  // Of one key.
  struct Lane {
    Lane() = default;
    Lane(Lane&&) = default;
    Lane& operator=(Lane&&) = default;

    std::deque<Waiting> small{};
    std::deque<Waiting> large{};
  };

  void run(bool takes_new) noexcept;
  void go_on_with(std::shared_ptr<Continuation> work) noexcept;
  void run_task(const Task& task) noexcept;
  std::deque<Waiting>* next_queue();
  bool may_run(const Lane& lane) const;
  void close();

  // Constant after construction.
  const int32_t max_large_;
  Faults& faults_;

  FairBudget places_;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;  // [0]: without a key
  size_t turn_ = 0;          // the lane that is asked first
  uint64_t n_ever_ = 0;
  int32_t n_large_ = 0;                  // being run
  std::shared_ptr<Continuation> first_;  // a list
  Continuation* last_ = nullptr;         // of it
  bool is_closed_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace candor::http
