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
  } else if (oldest_ != kNoBlock) {
    allocation = {.block = oldest_, .was_cached = true};
    unlink(oldest_);
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

void BlockPool::set_cacheable(BlockId block) {
  Node& node = nodes_[index(block)];
  CANDOR_CHECK(node.n_owners > 0);
  node.is_cacheable = true;
}

void BlockPool::link_newest(BlockId block) {
  Node& node = nodes_[index(block)];
  node.older = newest_;
  node.newer = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : nodes_[index(newest_)].newer) = block;
  newest_ = block;
  ++n_cached_;
}

void BlockPool::unlink(BlockId block) {
  Node& node = nodes_[index(block)];
  (node.older == kNoBlock ? oldest_ : nodes_[index(node.older)].newer) = node.newer;
  (node.newer == kNoBlock ? newest_ : nodes_[index(node.newer)].older) = node.older;
  node.older = node.newer = kNoBlock;
  --n_cached_;
}

}  // namespace candor::kv
