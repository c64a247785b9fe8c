#pragma once
// Reference counts of the K/V blocks. Integers only; the memory belongs to a backend::KvStore. One engine thread owns a
// pool. Every operation is O(1).
//
// A block is in one of three states:
//   free    no owner, content worthless;
//   used    held by one or more owners;
//   cached  no owner, but kept because its content may be wanted again; taken, least recently used first, when free
//           blocks run out. Blocks that are marked to go first go before all others.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace candor::kv {

struct Allocation {
  BlockId block = kNoBlock;
  bool was_cached = false;  // its old content is lost: the caller removes it from the index
};

class BlockPool {
 public:
  // REQUIRES: n_blocks >= 0.
  explicit BlockPool(int32_t n_blocks);

  // A block with one owner, not cacheable; a free one, else the cached one that was released longest ago.
  std::optional<Allocation> allocate();
  // One more owner of a used or cached block.
  void retain(BlockId block);
  // One owner less. At none, a cacheable block becomes cached and any other free.
  void release(BlockId block);
  // Marks a used block as worth keeping; goes_first: as long as no other is wanted.
  void set_cacheable(BlockId block, bool goes_first = false);
  // Its content is worth nothing any more: it is free as soon as nobody holds it.
  void set_worthless(BlockId block);

  int32_t n_owners(BlockId block) const { return nodes_[index(block)].n_owners; }
  bool is_cacheable(BlockId block) const { return nodes_[index(block)].is_cacheable; }
  int32_t n_blocks() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t n_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t n_cached() const { return n_cached_; }
  int32_t n_used() const { return n_blocks() - n_free() - n_cached_; }
  // Blocks that allocate() can still give.
  int32_t n_available() const { return n_free() + n_cached_; }
  // Of them, those that are free or go first.
  int32_t n_spare() const { return n_free() + first_.n_blocks; }

 private:
  struct Node {
    int32_t n_owners = 0;
    bool is_cacheable = false;
    bool goes_first = false;
    BlockId older = kNoBlock;  // neighbours in the list of cached blocks
    BlockId newer = kNoBlock;
  };
  struct CachedList {
    BlockId oldest = kNoBlock;
    BlockId newest = kNoBlock;
    int32_t n_blocks = 0;
  };

  static size_t index(BlockId block) { return static_cast<size_t>(block); }
  CachedList& list_of(const Node& node) { return node.goes_first ? first_ : others_; }
  void link_newest(BlockId block);
  void unlink(BlockId block);

  // Engine thread only.
  std::vector<Node> nodes_;
  std::vector<BlockId> free_;  // a stack: the lowest ids leave first from a fresh pool
  CachedList first_;           // those that go first
  CachedList others_;
  int32_t n_cached_ = 0;
};

}  // namespace candor::kv
