#pragma once
// One block of the prefix cache as it stands in a segment: a header of fixed size, then the payload (the block's K/V,
// then the recurrent state behind it, where there is one). Little-endian. Both have a checksum (XXH3, 64 bits): what a
// disk or a torn write changed is not there.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace candor::prefix_store {

using Digest = std::array<uint8_t, 16>;  // kv::PrefixDigest

inline constexpr size_t kMostBlockTokens = 64;
inline constexpr size_t kRecordAlignment = 64;

struct RecordHeader {
  uint32_t magic = 0;
  uint32_t n_tokens = 0;  // of the block
  Digest digest{};
  Digest parent{};
  uint64_t model_hash = 0;
  uint64_t adapters_hash = 0;
  int32_t numerics = 0;
  int32_t kv_type = 0;
  uint64_t block_bytes = 0;
  uint64_t state_bytes = 0;  // 0: no state
  int64_t made_at = 0;       // seconds since 1970
  uint32_t n_before = 0;     // tokens before the block
  uint32_t reserved = 0;
  std::array<int32_t, kMostBlockTokens> tokens{};
  uint64_t payload_sum = 0;
  uint64_t header_sum = 0;  // of all above

  uint64_t payload_bytes() const { return block_bytes + state_bytes; }
  // With its header, padded to the alignment.
  uint64_t record_bytes() const;
  std::span<const int32_t> block_tokens() const { return std::span(tokens).first(n_tokens); }
};
static_assert(sizeof(RecordHeader) == 368);

// Sums and sizes that can be.
bool is_sound(const RecordHeader& header);
// Fills magic and sums.
void seal(RecordHeader& header, std::span<const std::byte> payload);
bool fits(const RecordHeader& header, std::span<const std::byte> payload);

uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace candor::prefix_store
