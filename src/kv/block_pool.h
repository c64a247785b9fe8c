#pragma once
// Reference counts of the K/V blocks: integers only, the memory itself belongs to a backend::KvStore. A block is
//   free    in nobody's use, content worthless;
//   used    held by one or more owners;
//   cached  held by nobody, but kept because its content may be wanted again; taken back, least recently used first,
//           when free blocks run out.
// One engine thread owns a pool. Every operation is O(1).

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace candor::kv {

struct Allocation {
  BlockId block = kNoBlock;
  bool was_cached = false;  // its old content is lost: whoever indexed it must forget it
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
  // Marks a used block as worth keeping.
  void set_cacheable(BlockId block);

  int32_t n_owners(BlockId block) const { return nodes_[index(block)].n_owners; }
  bool is_cacheable(BlockId block) const { return nodes_[index(block)].is_cacheable; }
  int32_t n_blocks() const { return static_cast<int32_t>(nodes_.size()); }
  int32_t n_free() const { return static_cast<int32_t>(free_.size()); }
  int32_t n_cached() const { return n_cached_; }
  int32_t n_used() const { return n_blocks() - n_free() - n_cached_; }
  // Blocks that allocate() can still give.
  int32_t n_available() const { return n_free() + n_cached_; }

 private:
  struct Node {
    int32_t n_owners = 0;
    bool is_cacheable = false;
    BlockId older = kNoBlock;  // neighbours in the list of cached blocks
    BlockId newer = kNoBlock;
  };

  static size_t index(BlockId block) { return static_cast<size_t>(block); }
  void link_newest(BlockId block);
  void unlink(BlockId block);

  // Engine thread only.
  std::vector<Node> nodes_;
  std::vector<BlockId> free_;  // a stack: the lowest ids leave first from a fresh pool
  BlockId oldest_ = kNoBlock;
  BlockId newest_ = kNoBlock;
  int32_t n_cached_ = 0;
};

}  // namespace candor::kv
