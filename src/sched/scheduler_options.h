#pragma once
// The sizes and rules that a scheduler is made with: how many sequences, tokens and K/V blocks, and what a step may
// cost.

#include <cstdint>

#include "backend/op_specs.h"
#include "kv/prefix_index.h"
#include "sched/cost_model.h"

namespace candor::sched {

// A sequence that waits so many plans is of the next rank.
inline constexpr int64_t kStepsPerRank = 256;

struct SchedulerOptions {
  int32_t n_ctx = 0;     // most tokens of a sequence in the K/V store
  int32_t n_blocks = 0;  // of the pool; must hold n_ctx tokens
  int32_t block_tokens = backend::kBlockTokens;
  // Slots of recurrent states: 2 max_running and the drafts of a step at least, beyond them for checkpoints; 0 = the
  // model has none.
  int32_t n_states = 0;
  int32_t max_running = 16;
  int32_t max_queued = 128;
  int32_t window_tokens = 0;  // no layer looks further back; 0 = some layer sees everything
  bool reads_whole = false;   // a sequence's tokens are read by one step, where each sees all others
  bool use_prefix_index = true;
  bool use_kv_cache = true;  // false: everything is computed again for every token
  CostModel costs{};
  kv::PrefixHash hash = kv::hash_prefix;
};

}  // namespace candor::sched
