#pragma once
// What the parts of a scheduler share: its options, the sequences in work, their blocks, and who was served how much.
// Engine thread only.

#include "kv/block_manager.h"
#include "sched/fair_share.h"
#include "sched/scheduler_options.h"
#include "sched/sequence_pool.h"

namespace candor::sched {

struct SchedulerState {
  explicit SchedulerState(const SchedulerOptions& with)
      : options(with), blocks(with.n_blocks, with.block_tokens, with.hash, with.n_states), sequences(with) {}

  SchedulerOptions options;
  kv::BlockManager blocks;
  FairShare shares{};
  SequencePool sequences;
};

}  // namespace candor::sched
