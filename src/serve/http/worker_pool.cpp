#include "serve/http/worker_pool.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace candor::http {

WorkerPool::WorkerPool(const WorkerOptions& options, Faults& faults)
    : max_large_(std::max(1, options.n_threads - 1)),
      faults_(faults),
      places_(static_cast<int64_t>(options.max_waiting), options.n_keys),
      lanes_(options.n_keys + 1) {
  threads_.reserve(static_cast<size_t>(options.n_threads) + 1);
  try {
    for (int32_t i = 0; i <= options.n_threads; ++i) {
      threads_.emplace_back([this, takes_new = i > 0] { run(takes_new); });
    }
  } catch (...) {
    close();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  drop_waiting();
  close();
}

void WorkerPool::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::try_post(Task task) {
  const int32_t key = task.key;
  Waiting waiting{.task = std::move(task), .place = places_.share_of(key)};
  if (!waiting.place.try_grow(1)) return false;
  {
    const std::lock_guard lock(mutex_);
    Lane& lane = lanes_[static_cast<size_t>(int64_t{key} + 1)];
    waiting.number = ++n_ever_;
    (waiting.task.is_large ? lane.large : lane.small).push_back(std::move(waiting));
  }
  changed_.notify_all();  // one that takes new work is among them
  return true;
}

void WorkerPool::post_first(std::shared_ptr<Continuation> work) noexcept {
  {
    const std::lock_guard lock(mutex_);
    Continuation* const added = work.get();
    (last_ == nullptr ? first_ : last_->next_) = std::move(work);
    last_ = added;
  }
  changed_.notify_one();
}

void WorkerPool::drop_waiting() noexcept {
  std::vector<Lane> dropped;
  try {
    const std::lock_guard lock(mutex_);
    dropped.resize(lanes_.size());
    dropped.swap(lanes_);
  } catch (...) {
    return faults_.note(FaultPlace::kWorker, std::current_exception());
  }
  for (Lane& lane : dropped) {
    for (std::deque<Waiting>* queue : {&lane.small, &lane.large}) {
      for (Waiting& waiting : *queue) run_task({.run = std::move(waiting.task.drop)});
    }
  }
}

bool WorkerPool::may_run(const Lane& lane) const {
  return !lane.small.empty() || (n_large_ < max_large_ && !lane.large.empty());
}

// The queue whose front is next: keys take turns, each has its own in order of arrival. REQUIRES: mutex_ is held.
std::deque<WorkerPool::Waiting>* WorkerPool::next_queue() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[(turn_ + i) % lanes_.size()];
    if (!may_run(lane)) continue;
    turn_ = (turn_ + i + 1) % lanes_.size();
    const bool may_be_large = n_large_ < max_large_ && !lane.large.empty();
    const bool is_large = may_be_large && (lane.small.empty() || lane.large.front().number < lane.small.front().number);
    return is_large ? &lane.large : &lane.small;
  }
  return nullptr;
}

void WorkerPool::run(bool takes_new) noexcept {
  std::unique_lock lock(mutex_);
  while (true) {
    std::deque<Waiting>* queue = nullptr;
    changed_.wait(lock, [&] {
      queue = takes_new && !first_ ? next_queue() : nullptr;
      return is_closed_ || first_ || queue != nullptr;
    });
    if (first_) {
      std::shared_ptr<Continuation> work = std::move(first_);
      first_ = std::move(work->next_);
      if (!first_) last_ = nullptr;
      lock.unlock();
      go_on_with(std::move(work));
      lock.lock();
    } else if (queue != nullptr) {
      Task task = std::move(queue->front().task);
      queue->pop_front();
      n_large_ += task.is_large ? 1 : 0;
      lock.unlock();
      run_task(task);
      const bool was_large = task.is_large;
      task = {};
      lock.lock();
      n_large_ -= was_large ? 1 : 0;
      if (was_large) changed_.notify_all();
    } else {
      return;
    }
  }
}

void WorkerPool::go_on_with(std::shared_ptr<Continuation> work) noexcept {
  work->go_on();
  work.reset();  // the last owner may be this one
}

void WorkerPool::run_task(const Task& task) noexcept {
  try {
    if (task.run) task.run();
  } catch (...) {
    faults_.note(FaultPlace::kWorker, std::current_exception());
  }
}

}  // namespace candor::http
