#include "kv/block_pool.h"

#include "base/error.h"

namespace candor::kv {

BlockPool::BlockPool(int32_t n_blocks) {
  CANDOR_CHECK(n_blocks >= 0);
  nodes_.resize(static_cast<size_t>(n_blocks));
  free_.reserve(static_cast<size_t>(n_blocks));
  for (BlockId block = n_blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::optional<Allocation> BlockPool::allocate() {
  Allocation allocation;
  if (!free_.empty()) {
    allocation.block = free_.back();
    free_.pop_back();
  } else if (n_cached_ > 0) {
    allocation = {.block = first_.n_blocks > 0 ? first_.oldest : others_.oldest, .was_cached = true};
    unlink(allocation.block);
  } else {
    return std::nullopt;
  }
  Node& node = nodes_[index(allocation.block)];
  node.n_owners = 1;
  node.is_cacheable = false;
  return allocation;
}

void BlockPool::retain(BlockId block) {
  Node& node = nodes_[index(block)];
  if (node.n_owners == 0) {
    CANDOR_CHECK(node.is_cacheable);
    unlink(block);
  }
  ++node.n_owners;
}

void BlockPool::release(BlockId block) {
  Node& node = nodes_[index(block)];
  CANDOR_CHECK(node.n_owners > 0);
  if (--node.n_owners > 0) return;
  if (node.is_cacheable) {
    link_newest(block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::set_cacheable(BlockId block, bool goes_first) {
  Node& node = nodes_[index(block)];
  CANDOR_CHECK(node.n_owners > 0);
  node.is_cacheable = true;
  node.goes_first = goes_first;
}

void BlockPool::set_worthless(BlockId block) {
  Node& node = nodes_[index(block)];
  if (node.n_owners == 0 && node.is_cacheable) {
    unlink(block);
    free_.push_back(block);
  }
  node.is_cacheable = false;
}

void BlockPool::link_newest(BlockId block) {
  Node& node = nodes_[index(block)];
  CachedList& list = list_of(node);
  node.older = list.newest;
  node.newer = kNoBlock;
  (list.newest == kNoBlock ? list.oldest : nodes_[index(list.newest)].newer) = block;
  list.newest = block;
  ++list.n_blocks;
  ++n_cached_;
}

void BlockPool::unlink(BlockId block) {
  Node& node = nodes_[index(block)];
  CachedList& list = list_of(node);
  (node.older == kNoBlock ? list.oldest : nodes_[index(node.older)].newer) = node.newer;
  (node.newer == kNoBlock ? list.newest : nodes_[index(node.newer)].older) = node.older;
  node.older = node.newer = kNoBlock;
  --list.n_blocks;
  --n_cached_;
}

}  // namespace candor::kv
