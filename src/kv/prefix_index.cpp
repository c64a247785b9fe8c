#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/sha256.h"

namespace candor::kv {

uint64_t hash_prefix(uint64_t parent_hash, std::span<const TokenId> tokens) {
  return hash_bytes(std::as_bytes(tokens), parent_hash);
}

namespace {

PrefixDigest first_half(const Sha256& digest) {
  PrefixDigest half;
  std::ranges::copy(std::span(digest).first(half.size()), half.begin());
  return half;
}

}  // namespace

PrefixDigest root_digest(const PrefixKey& key) {
  struct Parts {
    uint64_t model_hash;
    uint64_t adapters_hash;
    int64_t numerics_version;
    int64_t kv_type;
    Sha256 scope;
  };
  static_assert(std::has_unique_object_representations_v<Parts>);
  const Parts parts{key.model_hash, key.adapters_hash, key.numerics_version, key.kv_type, sha256(key.scope)};
  return first_half(sha256(std::as_bytes(std::span(&parts, 1))));
}

PrefixDigest next_digest(const PrefixDigest& parent, std::span<const TokenId> tokens) {
  const auto is_of_image = [](TokenId token) { return token < 0; };
  if (parent == kNoDigest || std::ranges::any_of(tokens, is_of_image)) return kNoDigest;
  constexpr size_t kAtOnce = 64;
  std::array<TokenId, kAtOnce> bytes{};
  PrefixDigest digest = parent;
  for (size_t begin = 0; begin < tokens.size(); begin += kAtOnce - 4) {
    const auto part = tokens.subspan(begin, std::min(kAtOnce - 4, tokens.size() - begin));
    std::memcpy(bytes.data(), digest.data(), digest.size());
    std::ranges::copy(part, bytes.begin() + 4);
    digest = first_half(sha256(std::as_bytes(std::span(bytes).first(part.size() + 4))));
  }
  return digest;
}

PrefixIndex::PrefixIndex(int32_t n_blocks, int32_t block_tokens, PrefixHash hash)
    : hash_(hash),
      block_tokens_(static_cast<size_t>(block_tokens)),
      entries_(static_cast<size_t>(n_blocks)),
      tokens_(entries_.size() * block_tokens_),
      buckets_(std::bit_ceil(entries_.size() + 1), kNoBlock) {}

size_t PrefixIndex::bucket_of(const PrefixKey& key, EntryId parent, std::span<const TokenId> tokens) const {
  uint64_t seed = hash_mix(key.model_hash, static_cast<uint64_t>(parent));
  const uint64_t hash = hash_(hash_bytes(std::as_bytes(std::span(key.scope)), seed), tokens);
  return static_cast<size_t>(hash) & (buckets_.size() - 1);
}

std::span<TokenId> PrefixIndex::tokens_of(BlockId block) {
  return std::span(tokens_).subspan(static_cast<size_t>(block) * block_tokens_, block_tokens_);
}

std::span<const TokenId> PrefixIndex::tokens_of(BlockId block) const {
  return std::span(tokens_).subspan(static_cast<size_t>(block) * block_tokens_, block_tokens_);
}

std::optional<PrefixIndex::Hit> PrefixIndex::find(const PrefixKey& key, EntryId parent,
                                                  std::span<const TokenId> tokens) const {
  for (BlockId block = buckets_[bucket_of(key, parent, tokens)]; block != kNoBlock;) {
    const Entry& entry = entries_[static_cast<size_t>(block)];
    if (entry.parent == parent && std::ranges::equal(tokens_of(block), tokens) && entry.key == key) {
      return Hit{entry.id, block, entry.digest};
    }
    block = entry.next;
  }
  return std::nullopt;
}

PrefixIndex::Hit PrefixIndex::insert(const PrefixKey& key, EntryId parent, const PrefixDigest& digest,
                                     std::span<const TokenId> tokens, BlockId block) {
  Entry& entry = entries_[static_cast<size_t>(block)];
  CANDOR_CHECK(entry.id == kNoEntry && tokens.size() == block_tokens_);
  entry.id = next_id_++;
  entry.parent = parent;
  entry.bucket = bucket_of(key, parent, tokens);
  entry.key = key;
  entry.parent_digest = digest;
  entry.digest = next_digest(digest, tokens);
  std::ranges::copy(tokens, tokens_of(block).begin());
  entry.next = std::exchange(buckets_[entry.bucket], block);
  ++n_entries_;
  return {entry.id, block, entry.digest};
}

std::optional<PrefixIndex::Content> PrefixIndex::content_of(BlockId block) const {
  const Entry& entry = entries_[static_cast<size_t>(block)];
  if (entry.id == kNoEntry) return std::nullopt;
  return Content{entry.key, entry.digest, entry.parent_digest, tokens_of(block)};
}

void PrefixIndex::erase(BlockId block) {
  Entry& entry = entries_[static_cast<size_t>(block)];
  if (entry.id == kNoEntry) return;
  BlockId* link = &buckets_[entry.bucket];
  while (*link != block) link = &entries_[static_cast<size_t>(*link)].next;
  *link = entry.next;
  entry.id = kNoEntry;
  --n_entries_;
}

}  // namespace candor::kv
