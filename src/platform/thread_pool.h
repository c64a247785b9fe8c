#pragma once
// The compute threads: the caller and n - 1 workers. parallel_for() divides [0, n_units) among them as work_shares.h
// says: a thread that is done takes units from the others, so a worker that the system does not schedule holds up
// nobody, and two threads are not slower than one on a busy machine. A unit's result must not depend on the thread that
// computes it.
//
// One caller at a time (the engine thread). Functions run in the float mode of float_mode.h and must not call the pool.
// They should not throw; if one does, the units that were not begun are skipped, and parallel_for() rethrows the first
// exception after all threads have left the function. After work, workers spin for a while (longer between
// begin_burst() and end_burst()), then sleep.
//
//   pool.parallel_for({.n_units = n, .grain = 1, .unit_cost = flops}, [&](UnitRange r) { ... });

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "platform/affinity.h"
#include "platform/work_shares.h"

namespace candor::platform {

struct ThreadPoolOptions {
  int32_t n_threads = 1;  // the caller included; 1 to kMaxThreads
  bool spin = true;       // false where more threads than processors are asked for: workers then sleep at once
  std::vector<ThreadPlace> places{};  // one each, the caller's first, which stays where it is; empty: all alike
};

struct UnitRange {
  int64_t begin = 0;
  int64_t end = 0;
  int32_t thread = 0;  // which thread runs this; for scratch memory only
};

struct WorkSize {
  int64_t n_units = 0;
  int64_t grain = 1;      // least units taken at once
  int64_t unit_cost = 0;  // rough nanoseconds for one unit; below kMinParallelNs in all, the caller works alone
};

class ThreadPool {
 public:
  static constexpr int32_t kMaxThreads = 1024;
  static constexpr int64_t kMinParallelNs = 6000;  // about three times a fork and join of hot threads

  // Fails when n_threads is out of range or the system refuses a thread.
  static Result<std::unique_ptr<ThreadPool>> start(const ThreadPoolOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t n_threads() const { return n_threads_; }

  // Calls fn(UnitRange) until every unit was covered exactly once; returns when all are done.
  template <class Fn>
  void parallel_for(const WorkSize& size, Fn&& fn) {
    using Body = std::remove_reference_t<Fn>;
    run_job({[](void* body, UnitRange range) { (*static_cast<Body*>(body))(range); },
             const_cast<void*>(static_cast<const void*>(&fn))},
            size);
  }

  // Between the two, workers stay awake: a step is a burst of many small jobs.
  void begin_burst() noexcept { in_burst_.store(true, std::memory_order_relaxed); }
  void end_burst() noexcept { in_burst_.store(false, std::memory_order_relaxed); }

 private:
  struct Job {
    void (*call)(void* body, UnitRange range) = nullptr;
    void* body = nullptr;
  };
  explicit ThreadPool(const ThreadPoolOptions& options);
  void run_job(Job job, const WorkSize& size);
  void run_alone(Job job, int64_t n_units) const;
  void publish(Job job, const WorkSize& size);
  void work(int32_t thread);
  bool run_some(int32_t owner, int32_t thread);
  void worker_main(int32_t thread, const std::vector<int32_t>& cpus);
  uint32_t wait_for_job(uint32_t seen);
  void wait_for_grains();
  void call(UnitRange range) noexcept;

  // Constant after construction.
  int32_t n_threads_;
  bool spin_;
  std::vector<std::thread> workers_;  // [n_threads - 1]

  // Written by the caller while no thread holds a grain; read by the threads that hold one.
  Job job_;
  int64_t n_units_ = 0;
  int64_t grain_ = 1;
  WorkShares shares_;

  alignas(64) std::atomic<uint32_t> job_number_{0};
  std::atomic<int32_t> n_sleeping_{0};
  std::atomic<bool> in_burst_{false};
  std::atomic<bool> stopping_{false};
  alignas(64) std::atomic<int64_t> n_grains_left_{0};
  std::atomic<bool> has_failed_{false};  // in this job; the thread that sets it writes failure_
  std::exception_ptr failure_;
};

}  // namespace candor::platform
