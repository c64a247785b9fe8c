#pragma once
// Holds the sequences in work, waiting and running, in order, and spare Sequence objects whose memory is reused. The
// Admission decides which ones wait and which run. Engine thread only.

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "sched/scheduler_options.h"
#include "sched/sequence.h"

namespace candor::sched {

class SequencePool {
 public:
  using Owned = std::unique_ptr<Sequence>;

  explicit SequencePool(const SchedulerOptions& options);

  const std::vector<Owned>& waiting() const { return waiting_; }  // in no order
  const std::vector<Owned>& running() const { return running_; }  // in turn
  int32_t n_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int32_t n_running() const { return static_cast<int32_t>(running_.size()); }
  // nullptr for an unknown id.
  Sequence* find(SequenceId id) const;

  // A sequence without content whose vectors have their full size.
  Owned blank();
  // The sequence is over; its memory is kept. REQUIRES: it holds no blocks.
  void recycle(Owned sequence);

  // For one more of each; what follows then takes no memory.
  void make_room();
  void add_waiting(Owned sequence) { waiting_.push_back(std::move(sequence)); }
  // Behind all of its rank and order.
  void add_running(Owned sequence);
  Owned take_waiting(size_t i);
  Owned take_running(size_t i);

 private:
  // Constant after construction, but that a pool may be assigned.
  size_t n_tokens_;  // that a sequence has room for
  size_t n_blocks_;
  size_t n_states_;
  // Engine thread only.
  std::vector<Owned> waiting_;
  std::vector<Owned> running_;
  std::vector<Owned> spare_;
};

}  // namespace candor::sched
