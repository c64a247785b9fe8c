#include "constrain/mask_worker.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace candor::constrain {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

MaskWorker::MaskWorker(std::function<void()> on_here) : on_here_(std::move(on_here)) {
  threads_.back().takes_slow = true;
  try {
    for (Thread& thread : threads_) thread.thread = std::thread([this, &thread] { run(thread); });
  } catch (...) {
    stop();
    throw;
  }
}

MaskWorker::~MaskWorker() {
  stop();
}

void MaskWorker::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  for (Thread& thread : threads_) {
    thread.wake.notify_one();
    if (thread.thread.joinable()) thread.thread.join();
  }
}

void MaskWorker::want(const std::shared_ptr<MaskedConstraint>& constraint) {
  CANDOR_DCHECK(constraint->is_here());
  if (constraint->has_mask_ || constraint->is_wanted_) return;
  wanted_.push_back(constraint);
  constraint->is_wanted_ = true;
}

void MaskWorker::want_ahead(const std::shared_ptr<MaskedConstraint>& constraint, TokenId token) {
  CANDOR_DCHECK(constraint->is_here() && constraint->has_mask_ && !constraint->is_ahead_);
  if (!constraint->is_wanted_) wanted_.push_back(constraint);
  constraint->is_wanted_ = true;
  constraint->next_token_ = token;
}

void MaskWorker::send() {
  while (!wanted_.empty()) send(wanted_.back()->family_);
}

// All of one family, which is away then.
void MaskWorker::send(const std::shared_ptr<Family>& of) {
  // A copy: `of` may be that of a constraint in wanted_, which goes. NOLINTNEXTLINE(performance-unnecessary-copy-*)
  const std::shared_ptr<Family> family = of;
  const auto is_of_it = [&](const auto& constraint) { return constraint->family_ == family; };
  Queue job(1);
  job.front().family = family;
  for (const auto& constraint : wanted_) {
    if (is_of_it(constraint)) job.front().members.push_back(constraint);
  }
  const auto n_members = static_cast<int32_t>(job.front().members.size());
  for (const auto& constraint : job.front().members) constraint->is_wanted_ = false;
  std::erase_if(wanted_, is_of_it);
  const std::lock_guard lock(mutex_);
  family->n_away.store(n_members, std::memory_order_relaxed);
  put(job);
}

bool MaskWorker::has(const std::shared_ptr<MaskedConstraint>& constraint) {
  if (constraint->is_here()) {
    if (constraint->has_mask()) return true;
    want(constraint);
    send(constraint->family_);
  }
  if (left_ns_ > 0 && !constraint->is_slow()) wait_for(*constraint);
  return constraint->is_here() && constraint->has_mask();
}

void MaskWorker::wait_for(const MaskedConstraint& constraint) {
  const auto begin = Clock::now();
  {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::nanoseconds(left_ns_), [&] { return constraint.is_here(); });
  }
  left_ns_ -= std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

// Moves the job into its queue, and wakes a thread that takes it.
void MaskWorker::put(Queue& job) {
  const bool is_slow = job.front().family->n_until_quick.load(std::memory_order_relaxed) > 0;
  Queue& queue = is_slow ? slow_ : quick_;
  queue.splice(queue.end(), job);
  for (Thread& thread : threads_) {
    if (!thread.is_idle || (is_slow && !thread.takes_slow)) continue;
    thread.is_idle = false;
    thread.wake.notify_one();
    return;
  }
}

MaskWorker::Queue* MaskWorker::queue_for(const Thread& thread) {
  if (!quick_.empty()) return &quick_;
  return thread.takes_slow && !slow_.empty() ? &slow_ : nullptr;
}

void MaskWorker::run(Thread& thread) noexcept {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    if (Queue* queue = queue_for(thread)) {
      compute_one(*queue, lock);
      continue;
    }
    thread.is_idle = true;
    thread.wake.wait(lock);
    thread.is_idle = false;
  }
}

// The first mask of the first job, which then waits for its next turn.
void MaskWorker::compute_one(Queue& queue, std::unique_lock<std::mutex>& lock) {
  Queue job;
  job.splice(job.end(), queue, queue.begin());
  auto& members = job.front().members;
  std::shared_ptr<MaskedConstraint> member = std::move(members.front());
  members.pop_front();
  lock.unlock();
  if (member.use_count() > 1) member->compute();
  member.reset();
  lock.lock();
  const std::shared_ptr<Family> family = job.front().family;
  if (!members.empty()) put(job);
  if (family->n_away.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  came_.notify_all();
  on_here_();
}

}  // namespace candor::constrain
