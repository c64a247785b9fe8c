#include "kv/block_manager.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace candor::kv {

BlockManager::BlockManager(int32_t n_blocks, int32_t block_tokens, PrefixHash hash, int32_t n_states)
    : block_tokens_(block_tokens), pool_(n_blocks), index_(n_blocks, block_tokens, hash), states_(n_states, n_blocks) {
  CANDOR_CHECK(block_tokens > 0);
}

void BlockManager::note_lost(BlockId block) {
  const auto content = index_.content_of(block);
  if (!lists_lost_ || !content) return;
  if (n_lost_ == lost_.size()) lost_.emplace_back();
  LostBlock& lost = lost_[n_lost_++];
  lost.block = block;
  lost.state = states_.checkpoint_of(block);
  lost.digest = content->digest;
  lost.parent = content->parent;
  lost.key = content->key;
  lost.tokens.assign(content->tokens.begin(), content->tokens.end());
}

BlockId BlockManager::take() {
  const std::optional<Allocation> allocation = pool_.allocate();
  CANDOR_CHECK(allocation.has_value());
  if (allocation->was_cached) {
    note_lost(allocation->block);
    index_.erase(allocation->block);
    states_.forget(allocation->block);
  }
  return allocation->block;
}

int32_t BlockManager::match(const PrefixKey& key, std::span<const TokenId> tokens, BlockTable& table) {
  CANDOR_CHECK(table.blocks.empty());
  const size_t step = static_cast<size_t>(block_tokens_);
  const bool has_states = states_.n_slots() > 0;
  EntryId entry = kNoEntry;
  for (size_t begin = 0; begin + step <= tokens.size(); begin += step) {
    const auto hit = index_.find(key, entry, tokens.subspan(begin, step));
    if (!hit) break;
    entry = hit->entry;
    table.blocks.push_back(hit->block);
    table.n_known += block_tokens_;
    if (has_states && !states_.has_checkpoint(hit->block)) continue;
    table.n_published = static_cast<int32_t>(table.blocks.size());
    table.last_entry = entry;
    table.last_digest = hit->digest;
  }
  table.blocks.resize(static_cast<size_t>(table.n_published));
  for (const BlockId block : table.blocks) pool_.retain(block);
  if (has_states && !table.blocks.empty()) states_.begin_at(table.state, table.blocks.back());
  return table.n_published * block_tokens_;
}

int32_t BlockManager::n_missing(const BlockTable& table, int32_t n_tokens) const {
  return std::max(0, ceil_div(n_tokens, block_tokens_) - static_cast<int32_t>(table.blocks.size()));
}

bool BlockManager::grow(BlockTable& table, int32_t n_tokens) {
  const int32_t missing = n_missing(table, n_tokens);
  if (missing > pool_.n_available()) return false;
  for (int32_t i = 0; i < missing; ++i) table.blocks.push_back(take());
  return true;
}

std::optional<BlockCopy> BlockManager::make_writable(BlockTable& table, int32_t position, bool& failed) {
  const size_t j = static_cast<size_t>(position / block_tokens_);
  CANDOR_CHECK(j < table.blocks.size());
  failed = false;
  const BlockId shared = table.blocks[j];
  if (pool_.n_owners(shared) == 1 && !pool_.is_cacheable(shared)) return std::nullopt;
  if (pool_.n_available() == 0) {
    failed = true;
    return std::nullopt;
  }
  table.blocks[j] = take();
  pool_.release(shared);
  return BlockCopy{shared, table.blocks[j], position % block_tokens_};
}

void BlockManager::publish(const PrefixKey& key, std::span<const TokenId> tokens, int32_t n_tokens, BlockTable& table) {
  const size_t step = static_cast<size_t>(block_tokens_);
  while ((table.n_published + 1) * block_tokens_ <= n_tokens) {
    const size_t j = static_cast<size_t>(table.n_published);
    const auto content = tokens.subspan(j * step, step);
    BlockId& block = table.blocks[j];
    if (const auto hit = index_.find(key, table.last_entry, content)) {
      pool_.retain(hit->block);
      pool_.release(block);
      block = hit->block;
      table.last_entry = hit->entry;
      table.last_digest = hit->digest;
    } else {
      index_.erase(block);  // known under a beginning that was forgotten since
      if (table.n_published == 0) table.last_digest = root_digest(key);
      const auto made = index_.insert(key, table.last_entry, table.last_digest, content, block);
      table.last_entry = made.entry;
      table.last_digest = made.digest;
      pool_.set_cacheable(block);
    }
    ++table.n_published;
  }
}

std::optional<BlockManager::Adopted> BlockManager::adopt(const PrefixKey& key, std::span<const TokenId> tokens,
                                                         bool with_state, BlockTable& table) {
  Adopted adopted;
  auto entry = index_.find(key, table.last_entry, tokens);
  if (entry) {
    adopted.block = entry->block;
    pool_.retain(adopted.block);
  } else {
    if (pool_.n_available() == 0) return std::nullopt;
    adopted = {.block = take(), .is_new = true};
    if (table.blocks.empty()) table.last_digest = root_digest(key);
    entry = index_.insert(key, table.last_entry, table.last_digest, tokens, adopted.block);
    pool_.set_cacheable(adopted.block);
  }
  if (with_state && !states_.has_checkpoint(adopted.block)) adopted.state = states_.adopt(adopted.block);
  table.blocks.push_back(adopted.block);
  table.last_entry = entry->entry;
  table.last_digest = entry->digest;
  ++table.n_published;
  return adopted;
}

void BlockManager::settle_states(BlockTable& table, int32_t n_tokens) {
  for (const StateAt& state : table.state.coming) {
    const int32_t n_blocks = state.n_tokens / block_tokens_;
    if (state.keep == Keep::kNot || state.n_tokens > n_tokens || n_blocks > table.n_published) continue;
    CANDOR_CHECK(state.n_tokens == n_blocks * block_tokens_ && n_blocks > 0);
    states_.keep(table.state, state, table.blocks[static_cast<size_t>(n_blocks) - 1]);
  }
  states_.settle(table.state, n_tokens);
}

void BlockManager::fork(const BlockTable& table, BlockTable& child) {
  CANDOR_CHECK(child.blocks.empty());
  for (const BlockId block : table.blocks) {
    if (block != kNoBlock) pool_.retain(block);
  }
  child.blocks.assign(table.blocks.begin(), table.blocks.end());
  child.n_published = table.n_published;
  child.n_dropped = table.n_dropped;
  child.n_known = table.n_known;
  child.last_entry = table.last_entry;
  child.last_digest = table.last_digest;
  states_.fork(table.state, child.state);
}

void BlockManager::truncate(BlockTable& table, int32_t n_tokens) {
  const size_t n_kept = static_cast<size_t>(ceil_div(n_tokens, block_tokens_));
  CANDOR_CHECK(table.n_published <= static_cast<int32_t>(n_kept));
  while (table.blocks.size() > n_kept) {
    release_block(table.blocks.back());
    table.blocks.pop_back();
  }
}

void BlockManager::drop_before(BlockTable& table, int32_t position) {
  const int32_t n = std::min(position / block_tokens_, static_cast<int32_t>(table.blocks.size()));
  for (; table.n_dropped < n; ++table.n_dropped) release_block(table.blocks[static_cast<size_t>(table.n_dropped)]);
}

void BlockManager::release(BlockTable& table) {
  while (!table.blocks.empty()) {
    release_block(table.blocks.back());
    table.blocks.pop_back();
  }
  table.n_published = 0;
  table.n_dropped = 0;
  table.n_known = 0;
  table.last_entry = kNoEntry;
  states_.release(table.state);
}

void BlockManager::release_block(BlockId& block) {
  if (block != kNoBlock) pool_.release(std::exchange(block, kNoBlock));
}

}  // namespace candor::kv
