#pragma once
// Finds the block that already holds the K/V of a given beginning. An entry is one full block of tokens that follows a
// known beginning (its parent entry, or nothing). A hash picks the bucket; a hit compares the parent and every token,
// so that by induction the whole beginning is equal. Entry ids are never reused: an entry whose parent was forgotten
// can not be found any more, and can not be mistaken either. Integers only; one engine thread owns an index. All memory
// is taken at construction, but for scopes of more than a few bytes.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"

namespace candor::kv {

// Everything besides the tokens that the content of a block depends on, and who may see it. All of it is compared.
struct PrefixKey {
  uint64_t model_hash = 0;
  uint64_t adapters_hash = 0;  // 0: none
  int32_t numerics_version = 0;
  int32_t kv_type = 0;
  std::string scope{};  // requests of different scopes share nothing
  bool operator==(const PrefixKey&) const = default;
};

// Names the content of a block outside of this index: of the key, the beginning before it, and its own tokens. 128 bits
// of SHA-256, so that nobody can make two contents of one name.
using PrefixDigest = std::array<uint8_t, 16>;
// Content behind tokens that stand for an image (below 0: numbers of this process) has no name, kNoDigest.
inline constexpr PrefixDigest kNoDigest{};
PrefixDigest root_digest(const PrefixKey& key);
PrefixDigest next_digest(const PrefixDigest& parent, std::span<const TokenId> tokens);

using EntryId = int64_t;
inline constexpr EntryId kNoEntry = -1;  // as a parent: the beginning of the text

using PrefixHash = uint64_t (*)(uint64_t parent_hash, std::span<const TokenId> tokens);
uint64_t hash_prefix(uint64_t parent_hash, std::span<const TokenId> tokens);

class PrefixIndex {
 public:
  struct Hit {
    EntryId entry = kNoEntry;
    BlockId block = kNoBlock;
    PrefixDigest digest{};
  };
  // What is known of an indexed block.
  struct Content {
    const PrefixKey& key;
    PrefixDigest digest{};
    PrefixDigest parent{};
    std::span<const TokenId> tokens;
  };

  // `hash` may be any function of its arguments; a constant one is slow and still right.
  PrefixIndex(int32_t n_blocks, int32_t block_tokens, PrefixHash hash = hash_prefix);

  // The block that holds `tokens` after `parent`.
  std::optional<Hit> find(const PrefixKey& key, EntryId parent, std::span<const TokenId> tokens) const;
  // digest: of the parent, or the key's root. REQUIRES: find() gives nothing, the block is not indexed and full, and
  // parent is kNoEntry or was an entry under `key`.
  Hit insert(const PrefixKey& key, EntryId parent, const PrefixDigest& digest, std::span<const TokenId> tokens,
             BlockId block);
  // Forgets the block's entry, if it has one.
  void erase(BlockId block);

  // nullopt where the block is not indexed. Valid until it is.
  std::optional<Content> content_of(BlockId block) const;

  int32_t n_entries() const { return n_entries_; }

 private:
  struct Entry {
    EntryId id = kNoEntry;
    EntryId parent = kNoEntry;
    size_t bucket = 0;
    BlockId next = kNoBlock;  // in the same bucket
    PrefixKey key;
    PrefixDigest digest{};
    PrefixDigest parent_digest{};
  };

  size_t bucket_of(const PrefixKey& key, EntryId parent, std::span<const TokenId> tokens) const;
  std::span<TokenId> tokens_of(BlockId block);
  std::span<const TokenId> tokens_of(BlockId block) const;

  // Constant after construction.
  PrefixHash hash_;
  size_t block_tokens_;
  // Engine thread only.
  std::vector<Entry> entries_;    // [n_blocks], by the block that holds the content
  std::vector<TokenId> tokens_;   // [n_blocks * block_tokens]
  std::vector<BlockId> buckets_;  // the first block of each chain
  EntryId next_id_ = 0;
  int32_t n_entries_ = 0;
};

}  // namespace candor::kv
