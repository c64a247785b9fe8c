#include "serve/http/worker_pool.h"

#include <utility>

namespace candor::http {

WorkerPool::WorkerPool(int32_t n_threads, size_t max_waiting) : max_waiting_(max_waiting) {
  for (int32_t i = 0; i < n_threads; ++i) threads_.emplace_back([this] { run(); });
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::try_post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (new_.size() >= max_waiting_) return false;
    new_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void WorkerPool::post_first(Task task) {
  {
    const std::lock_guard lock(mutex_);
    first_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void WorkerPool::run() {
  while (true) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_closed_ || !first_.empty() || !new_.empty(); });
      std::deque<Task>& queue = first_.empty() ? new_ : first_;
      if (queue.empty()) return;
      task = std::move(queue.front());
      queue.pop_front();
    }
    task();
  }
}

}  // namespace candor::http
