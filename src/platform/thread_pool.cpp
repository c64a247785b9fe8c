#include "platform/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "platform/float_mode.h"
#include "platform/futex.h"

namespace candor::platform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxGrainsPerThread = 4096;  // must fit 16 bits of Share
constexpr uint64_t kTakenOfLeft = 2;           // half of what is left at once: few pieces, small ones at the end
// Whoever spins may hold the very processor that the others need, so spinning is short and yielding follows.
constexpr int kPausesPerCheck = 32;  // a pause takes 5 to 50 ns
constexpr auto kSpinIdle = std::chrono::microseconds(5);
constexpr auto kSpinBurst = std::chrono::microseconds(20);
constexpr auto kYieldBurst = std::chrono::milliseconds(2);  // then a worker sleeps even inside a burst
constexpr int kSpinsOfCaller = 100;                         // while it waits for the last grains

constexpr uint64_t pack_share(uint32_t job, uint64_t next, uint64_t end) {
  return (uint64_t{job} << 32) | (next << 16) | end;
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(const ThreadPoolOptions& options) {
  if (options.n_threads < 1 || options.n_threads > kMaxThreads) {
    return fail(ErrorKind::kInvalidInput, "threads: " + std::to_string(options.n_threads) +
                                              " is out of range, expected 1 to " + std::to_string(kMaxThreads));
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(options));
  try {
    for (int32_t thread = 1; thread < options.n_threads; ++thread)
      pool->workers_.emplace_back([raw = pool.get(), thread] { raw->worker_main(thread); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::kInvalidInput,
                "threads: the system refuses thread " + std::to_string(pool->workers_.size() + 2) + " of " +
                    std::to_string(options.n_threads) + " (" + error.what() + "); ask for fewer");
  }
  return pool;
}

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : n_threads_(options.n_threads),
      spin_(options.spin),
      shares_(static_cast<size_t>(options.n_threads)),
      first_grain_(static_cast<size_t>(options.n_threads)) {
  workers_.reserve(static_cast<size_t>(options.n_threads - 1));
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  job_number_.fetch_add(1);
  futex_wake_all(job_number_);
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run_job(Job job, const WorkSize& size) {
  if (size.n_units <= 0) return;
  const ScopedFloatMode mode;
  const bool tiny = size.unit_cost > 0 && size.unit_cost * size.n_units < kMinParallelNs;
  if (n_threads_ == 1 || size.n_units <= size.grain || tiny) return run_alone(job, size.n_units);
  publish(job, size);
  work(0);
  wait_for_grains();
  if (!has_failed_.load(std::memory_order_relaxed)) return;
  has_failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Whatever is thrown, the grains count as done: the caller waits for them, and workers go on.
void ThreadPool::call(UnitRange range) noexcept {
  if (has_failed_.load(std::memory_order_relaxed)) return;
  try {
    job_.call(job_.body, range);
  } catch (...) {
    if (!has_failed_.exchange(true)) failure_ = std::current_exception();
  }
}

void ThreadPool::run_alone(Job job, int64_t n_units) const {
  job.call(job.body, {0, n_units, 0});
}

void ThreadPool::publish(Job job, const WorkSize& size) {
  const int64_t smallest = ceil_div<int64_t>(size.n_units, kMaxGrainsPerThread * n_threads_);
  job_ = job;
  n_units_ = size.n_units;
  grain_ = std::max({int64_t{1}, size.grain, smallest});
  const int64_t n_grains = ceil_div(n_units_, grain_);
  const uint32_t number = job_number_.load(std::memory_order_relaxed) + 1;
  n_grains_left_.store(n_grains, std::memory_order_relaxed);
  for (int32_t thread = 0; thread < n_threads_; ++thread)
    first_grain_[static_cast<size_t>(thread)] = n_grains * thread / n_threads_;
  for (int32_t thread = 0; thread < n_threads_; ++thread) {
    const int64_t count = n_grains * (thread + 1) / n_threads_ - n_grains * thread / n_threads_;
    shares_[static_cast<size_t>(thread)].state.store(pack_share(number, 0, static_cast<uint64_t>(count)),
                                                     std::memory_order_release);
  }
  // Both sides are sequentially consistent: either this thread sees the sleeper, or the sleeper sees the new number.
  job_number_.store(number);
  if (n_sleeping_.load() > 0) futex_wake_all(job_number_);
}

// Its own range first, then the others' in turn.
void ThreadPool::work(int32_t thread) {
  for (int32_t step = 0; step < n_threads_; ++step) {
    const int32_t owner = (thread + step) % n_threads_;
    while (run_some(owner, thread)) {
    }
  }
}

// Takes and runs some grains of owner's range: the first for the owner, the last for others. False when none is left.
bool ThreadPool::run_some(int32_t owner, int32_t thread) {
  std::atomic<uint64_t>& state = shares_[static_cast<size_t>(owner)].state;
  uint64_t seen = state.load(std::memory_order_acquire);
  uint64_t next = 0;
  uint64_t end = 0;
  uint64_t count = 0;
  do {
    next = (seen >> 16) & 0xffff;
    end = seen & 0xffff;
    if (next >= end) return false;
    count = std::max(uint64_t{1}, (end - next) / kTakenOfLeft);
  } while (!state.compare_exchange_weak(seen, owner == thread ? seen + (count << 16) : seen - count,
                                        std::memory_order_acq_rel, std::memory_order_acquire));
  const uint64_t taken = owner == thread ? next : end - count;
  const int64_t begin = (first_grain_[static_cast<size_t>(owner)] + static_cast<int64_t>(taken)) * grain_;
  const auto n_grains = static_cast<int64_t>(count);
  call({begin, std::min(begin + n_grains * grain_, n_units_), thread});
  n_grains_left_.fetch_sub(n_grains, std::memory_order_acq_rel);
  return true;
}

void ThreadPool::wait_for_grains() {
  for (int spins = 0; n_grains_left_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpinsOfCaller && spin_) {
      spin_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::worker_main(int32_t thread) {
  const ScopedFloatMode mode;
  uint32_t seen = 0;
  while (true) {
    seen = wait_for_job(seen);
    if (stopping_.load()) return;
    work(thread);
  }
}

// Returns the number of a job later than `seen`.
uint32_t ThreadPool::wait_for_job(uint32_t seen) {
  const auto start = Clock::now();
  while (spin_) {
    for (int i = 0; i < kPausesPerCheck; ++i) {
      const uint32_t number = job_number_.load(std::memory_order_acquire);
      if (number != seen) return number;
      spin_pause();
    }
    const auto waited = Clock::now() - start;
    const bool burst = in_burst_.load(std::memory_order_relaxed);
    if (waited > (burst ? kYieldBurst : kSpinIdle)) break;
    if (waited > kSpinBurst) std::this_thread::yield();
  }
  n_sleeping_.fetch_add(1);
  uint32_t number = job_number_.load();
  while (number == seen) {
    futex_wait(job_number_, seen);
    number = job_number_.load();
  }
  n_sleeping_.fetch_sub(1);
  return number;
}

}  // namespace candor::platform
