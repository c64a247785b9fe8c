#pragma once
// What attend() shares out over the threads. Partials are places in one buffer of results of splits.

#include <cstddef>
#include <cstdint>

namespace candor::backend::cpu {

// Consecutive rows of one sequence that are attended together.
struct RowGroup {
  size_t seq = 0;
  int32_t first = 0;  // row within the sequence's slice
  int32_t n_rows = 0;
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

// One member and head unit; its splits' partials stand one after another.
struct MemberUnit {
  size_t prefix = 0;
  size_t member = 0;
  int32_t head_unit = 0;
  size_t partial = 0;
};

}  // namespace candor::backend::cpu
