#pragma once
// The pending merges of one word: taken by key, the lowest first, and among equal keys by position, the leftmost first.
// Long words repeat few pairs, so positions wait in one list per key; they mostly come in rising order and then cost
// nothing to order. The others wait in a heap beside them. O(log n) an entry. Owner: one encode() call.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace candor::text {

class MergeQueue {
 public:
  struct Entry {
    uint32_t key = 0;
    uint32_t position = 0;
  };

  MergeQueue();
  // An entry may be pushed again, also while its key is being taken.
  void push(uint32_t key, uint32_t position);
  bool empty() const { return n_entries_ == 0; }
  // REQUIRES: !empty().
  Entry pop();

 private:
  struct List {
    uint32_t key = 0;
    size_t taken = 0;  // of `rising`
    std::vector<uint32_t> rising;
    std::vector<uint32_t> late;  // a heap, the lowest on top
    bool empty() const { return taken == rising.size() && late.empty(); }
    void push(uint32_t position);
    uint32_t pop();
  };
  static constexpr size_t kFree = SIZE_MAX;

  size_t list_of(uint32_t key);
  void grow_slots();

  std::vector<List> lists_;     // one per key ever pushed
  std::vector<size_t> slots_;   // key -> list: open addressing, a power of two, at most half used
  std::vector<uint64_t> heap_;  // key above, list below; the top has the lowest key
  size_t last_list_ = kFree;
  size_t n_entries_ = 0;
};

}  // namespace candor::text
