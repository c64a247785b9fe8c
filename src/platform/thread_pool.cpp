#include "platform/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "base/checked.h"
#include "platform/float_mode.h"
#include "platform/futex.h"

namespace candor::platform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMaxGrainsPerThread = 4096;  // of threads that are all alike
// A thread that spins may hold the very processor that the others need, so it spins briefly and then yields.
constexpr int kPausesPerCheck = 32;  // a pause takes 5 to 50 ns
constexpr auto kSpinIdle = std::chrono::microseconds(5);
constexpr auto kSpinBurst = std::chrono::microseconds(20);
constexpr auto kYieldBurst = std::chrono::milliseconds(2);  // then a worker sleeps even inside a burst
constexpr int kSpinsOfCaller = 100;                         // while it waits for the last grains

std::vector<int32_t> weights_of(const std::vector<ThreadPlace>& places) {
  std::vector<int32_t> weights;
  weights.reserve(places.size());
  for (const ThreadPlace& place : places) weights.push_back(std::max(1, place.weight));
  return weights;
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::start(const ThreadPoolOptions& options) {
  if (options.n_threads < 1 || options.n_threads > kMaxThreads) {
    return fail(ErrorKind::kInvalidInput, "threads: " + std::to_string(options.n_threads) +
                                              " is out of range, expected 1 to " + std::to_string(kMaxThreads));
  }
  std::unique_ptr<ThreadPool> pool(new ThreadPool(options));
  const auto cpus_of = [&options](int32_t thread) {
    const auto place = static_cast<size_t>(thread);
    return place < options.places.size() ? options.places[place].cpus : std::vector<int32_t>{};
  };
  try {
    for (int32_t thread = 1; thread < options.n_threads; ++thread)
      pool->workers_.emplace_back(
          [raw = pool.get(), thread, cpus = cpus_of(thread)] { raw->worker_main(thread, cpus); });
  } catch (const std::system_error& error) {
    return fail(ErrorKind::kInvalidInput,
                "threads: the system refuses thread " + std::to_string(pool->workers_.size() + 2) + " of " +
                    std::to_string(options.n_threads) + " (" + error.what() + "); ask for fewer");
  }
  return pool;
}

ThreadPool::ThreadPool(const ThreadPoolOptions& options)
    : n_threads_(options.n_threads), spin_(options.spin), shares_(options.n_threads, weights_of(options.places)) {
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
  const int64_t most = std::min(kMaxGrainsPerThread * n_threads_, shares_.most_grains());
  const int64_t smallest = ceil_div<int64_t>(size.n_units, most);
  job_ = job;
  n_units_ = size.n_units;
  grain_ = std::max({int64_t{1}, size.grain, smallest});
  const int64_t n_grains = ceil_div(n_units_, grain_);
  const uint32_t number = job_number_.load(std::memory_order_relaxed) + 1;
  n_grains_left_.store(n_grains, std::memory_order_relaxed);
  shares_.deal(number, n_grains);
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

// False when nothing is left of owner's range.
bool ThreadPool::run_some(int32_t owner, int32_t thread) {
  const std::optional<WorkShares::Taken> taken = shares_.take(owner, thread);
  if (!taken) return false;
  const int64_t begin = taken->first * grain_;
  call({begin, std::min(begin + taken->count * grain_, n_units_), thread});
  n_grains_left_.fetch_sub(taken->count, std::memory_order_acq_rel);
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

void ThreadPool::worker_main(int32_t thread, const std::vector<int32_t>& cpus) {
  const ScopedFloatMode mode;
  run_on(cpus);
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
