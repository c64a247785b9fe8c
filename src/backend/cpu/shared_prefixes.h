#pragma once
// Which sequences of a step begin with the same blocks of K/V (a system prompt, forks, beams), so that attention reads
// these once for all of them. Only sequences with few rows take part: many rows share what they read as it is.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/step_batch.h"

namespace candor::backend::cpu {

// members()[begin, end) see the same first n_tokens, a multiple of kernels::kKeyTile, and each row comes behind them.
struct SharedPrefix {
  size_t begin = 0;
  size_t end = 0;
  int32_t n_tokens = 0;
};

struct PrefixMember {
  size_t seq = 0;
  int32_t n_rows = 0;
  size_t first_row = 0;  // place among the rows of all members
};

class SharedPrefixes {
 public:
  static constexpr int32_t kMostRows = 8;       // of a member
  static constexpr int32_t kLeastTokens = 256;  // fewer save less than putting the results together costs

  // Forgets what was found before.
  void find(const StepBatch& batch);

  std::span<const SharedPrefix> prefixes() const { return prefixes_; }
  std::span<const PrefixMember> members() const { return members_; }
  // The step's rows of its members, in their order.
  std::span<const int32_t> rows_of(const SharedPrefix& prefix) const;
  bool is_member(size_t seq) const { return !prefixes_.empty() && is_member_[seq]; }

 private:
  void add(const StepBatch& batch, std::span<const size_t> seqs);

  std::vector<SharedPrefix> prefixes_;
  std::vector<PrefixMember> members_;
  std::vector<int32_t> rows_;
  std::vector<bool> is_member_;     // [S]
  std::vector<size_t> candidates_;  // kept to spare allocations
};

}  // namespace candor::backend::cpu
