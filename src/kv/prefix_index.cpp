#include "kv/prefix_index.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace candor::kv {

uint64_t hash_prefix(uint64_t parent_hash, std::span<const TokenId> tokens) {
  return hash_bytes(std::as_bytes(tokens), parent_hash);
}

PrefixIndex::PrefixIndex(int32_t n_blocks, PrefixHash hash) : hash_(hash), entries_(static_cast<size_t>(n_blocks)) {}

uint64_t PrefixIndex::hash_of(const PrefixKey& key, EntryId parent, std::span<const TokenId> tokens) const {
  uint64_t seed = hash_mix(key.model_hash, key.adapter_hash);
  seed = hash_mix(seed, static_cast<uint64_t>(parent));
  return hash_(hash_bytes(std::as_bytes(std::span(key.scope)), seed), tokens);
}

std::optional<PrefixIndex::Hit> PrefixIndex::find(const PrefixKey& key, EntryId parent,
                                                  std::span<const TokenId> tokens) const {
  const auto [first, last] = buckets_.equal_range(hash_of(key, parent, tokens));
  for (auto it = first; it != last; ++it) {
    const Entry& entry = entries_[static_cast<size_t>(it->second)];
    if (entry.parent == parent && std::ranges::equal(entry.tokens, tokens) && entry.key == key) {
      return Hit{entry.id, it->second};
    }
  }
  return std::nullopt;
}

EntryId PrefixIndex::insert(const PrefixKey& key, EntryId parent, std::span<const TokenId> tokens, BlockId block) {
  Entry& entry = entries_[static_cast<size_t>(block)];
  CANDOR_CHECK(entry.id == kNoEntry);
  entry.id = next_id_++;
  entry.parent = parent;
  entry.hash = hash_of(key, parent, tokens);
  entry.key = key;
  entry.tokens.assign(tokens.begin(), tokens.end());
  buckets_.emplace(entry.hash, block);
  ++n_entries_;
  return entry.id;
}

void PrefixIndex::erase(BlockId block) {
  Entry& entry = entries_[static_cast<size_t>(block)];
  if (entry.id == kNoEntry) return;
  const auto [first, last] = buckets_.equal_range(entry.hash);
  const auto it = std::find_if(first, last, [block](const auto& item) { return item.second == block; });
  CANDOR_CHECK(it != last);
  buckets_.erase(it);
  entry.id = kNoEntry;
  --n_entries_;
}

}  // namespace candor::kv
