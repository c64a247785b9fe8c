#pragma once
// The threads that do what the network thread must not: JSON, templates, tokenising, constraints. Two queues: a bounded
// one for new work, and one for work of requests that are already inside (bounded by their number), which goes first.

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace candor::http {

class WorkerPool {
 public:
  using Task = std::function<void()>;

  WorkerPool(int32_t n_threads, size_t max_waiting);
  // Does what is queued, then joins.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full. Tasks must not throw.
  bool try_post(Task task);
  void post_first(Task task);

 private:
  void run();

  const size_t max_waiting_;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> new_;
  std::deque<Task> first_;
  bool is_closed_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace candor::http
