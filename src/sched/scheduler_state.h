#pragma once
// What the parts of a scheduler share: its options, the sequences in work, their K/V blocks, and how much each key was
// served. Engine thread only.

#include "kv/block_manager.h"
#include "sched/fair_share.h"
#include "sched/scheduler_options.h"
#include "sched/sequence.h"
#include "sched/sequence_pool.h"

namespace candor::sched {

struct SchedulerState {
  explicit SchedulerState(const SchedulerOptions& with)
      : options(with), blocks(with.n_blocks, with.block_tokens, with.hash, with.n_states), sequences(with) {}

  // A sequence that begins with the same tokens may find what was computed for them.
  bool may_be_shared(const Sequence& sequence) const {
    return options.use_prefix_index && options.use_kv_cache && sequence.n_cropped == 0;
  }

  SchedulerOptions options;
  kv::BlockManager blocks;
  FairShare shares{};
  SequencePool sequences;
};

}  // namespace candor::sched
