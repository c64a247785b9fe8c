#pragma once
// The units of work into which attention (CpuOps::attend) is divided for the threads. A long context is computed in
// splits of consecutive keys; each split writes a partial result (maximum, sum and weighted values), and the partial
// results are then combined. A field `partial` is the byte offset of one such result in a buffer that all units share.

#include <cstddef>
#include <cstdint>

#include "backend/op_specs.h"
#include "backend/op_terms.h"

namespace candor::backend::cpu {

// The operands of an attend().
struct Attention {
  Activation dst, q, k, v;
  int32_t layer = 0;
  const AttnSpec* spec = nullptr;
  const float* slopes = nullptr;  // [H] of ALiBi, or nullptr
  const float* sinks = nullptr;   // [H], or nullptr
  const float* biases = nullptr;  // [H, 2 * spec->bias_reach + 1], or nullptr
  int32_t unit_heads = 1;         // of a unit of work; divides the heads that share a kv head
  int32_t n_head_units() const { return spec->n_heads / unit_heads; }
};

// Consecutive rows of one sequence that are attended together.
struct RowGroup {
  size_t seq = 0;
  int32_t first = 0;  // row within the sequence's slice
  int32_t n_rows = 0;
  int32_t seen_end = 0;  // position up to which all of them see, whatever their own; 0: each up to itself
};

// One split of one (row group, head), when a long context is shared between threads.
struct SplitUnit {
  int64_t group_unit = 0;
  int32_t split = 0;
  size_t partial = 0;
};

// One split of a shared prefix (shared_prefixes.h) and one head unit, for the rows of all members at once.
struct PrefixUnit {
  size_t prefix = 0;
  int32_t head_unit = 0;
  int32_t split = 0;
  size_t partial = 0;
  size_t first_member_unit = 0;  // of the same head unit
};

// One member and head unit; the partial results of its splits lie one after another.
struct MemberUnit {
  size_t prefix = 0;
  size_t member = 0;
  int32_t head_unit = 0;
  size_t partial = 0;
};

}  // namespace candor::backend::cpu
