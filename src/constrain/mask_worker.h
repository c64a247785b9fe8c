#pragma once
// Computes token masks of constraints on two threads of its own, beside the owner's thread (the engine thread), which
// uses them. Both threads take quick masks, only one of them slow ones, so that slow masks delay no quick ones and take
// no more than one processor. A mask that nobody holds any more is not begun.
//
// Constraints that were forked from one another (a family, masked_constraint.h) take turns as one. The destructor waits
// for the masks that are being computed, and for no other.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "constrain/masked_constraint.h"

namespace candor::constrain {

class MaskWorker {
 public:
  // on_here: called on a thread of the worker whenever a family is here again; must not throw or call the worker.
  // Throws std::system_error where the system refuses a thread.
  explicit MaskWorker(std::function<void()> on_here);
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  // Owner's thread. From here on has() waits no longer than this, all calls together.
  void allow_waiting(int64_t total_ns) { left_ns_ = total_ns; }
  // The mask is needed soon: send() hands it over, and until then its family stays here. REQUIRES: it is here.
  void want(const std::shared_ptr<MaskedConstraint>& constraint);
  // The same of accepting the token, and of the mask behind it. REQUIRES: it is here, with its mask.
  void want_ahead(const std::shared_ptr<MaskedConstraint>& constraint, TokenId token);
  void send();
  bool has_unsent() const { return !wanted_.empty(); }
  // Is it here, with its mask? Waits for it as far as that is allowed, for a slow one not at all; asks for the mask
  // where nobody did.
  bool has(const std::shared_ptr<MaskedConstraint>& constraint);

 private:
  using Family = MaskedConstraint::Family;
  // Members of one family that want a mask.
  struct Job {
    std::shared_ptr<Family> family{};
    std::deque<std::shared_ptr<MaskedConstraint>> members{};
  };
  using Queue = std::list<Job>;  // so that a job moves without taking memory
  struct Thread {
    std::condition_variable wake{};
    std::thread thread{};
    bool takes_slow = false;
    bool is_idle = false;  // guarded by mutex_
  };

  void send(const std::shared_ptr<Family>& family);
  void run(Thread& thread) noexcept;
  // REQUIRES, all three: mutex_ is held.
  Queue* queue_for(const Thread& thread);
  void put(Queue& job);
  void compute_one(Queue& queue, std::unique_lock<std::mutex>& lock);
  void wait_for(const MaskedConstraint& constraint);
  void stop();

  // Constant after construction.
  std::function<void()> on_here_;
  std::array<Thread, 2> threads_;
  // Owner's thread only.
  std::vector<std::shared_ptr<MaskedConstraint>> wanted_;
  int64_t left_ns_ = 0;
  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable came_;
  Queue quick_;
  Queue slow_;
  bool is_stopping_ = false;
};

}  // namespace candor::constrain
