#pragma once
// Byte pair merges: which two tokens become one, and in what order. A word is merged by taking, again and again, the
// pair of lowest rank, the leftmost first (Sennrich et al., "Neural machine translation of rare words with subword
// units", ACL 2016). Time O(n log n), stack constant. Immutable once filled; merge() may be called from any thread.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/ids.h"

namespace candor::text {

class MergeTable {
 public:
  static constexpr uint32_t kNoRank = UINT32_MAX;
  static constexpr size_t kMaxMerges = size_t{1} << 24;  // ten times the largest vocabularies

  // REQUIRES: n_merges <= kMaxMerges.
  explicit MergeTable(size_t n_merges);
  struct Merge {
    TokenId left;
    TokenId right;
    TokenId merged;
  };
  // A pair that stands already keeps its rank. REQUIRES: at most n_merges calls, rank < kNoRank.
  void insert(const Merge& merge, uint32_t rank);

  // Replaces the tokens of one word by what the merges make of them.
  void merge(std::vector<TokenId>& word) const;

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    uint32_t rank = kNoRank;
    TokenId merged = kNoToken;
  };

  const Slot& find(TokenId left, TokenId right) const;
  void merge_short(std::vector<TokenId>& word) const;
  void merge_long(std::vector<TokenId>& word) const;

  std::vector<Slot> slots_;  // open addressing; a power of two of them, at most half used
};

}  // namespace candor::text
