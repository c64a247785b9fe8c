#include "prefix_store/record.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace candor::prefix_store {
namespace {

// Another one when a header changes, and when what a block's memory holds does (backend/cpu/cpu_kv.h).
constexpr uint32_t kMagic = 0x31564b43;  // "CKV1"
constexpr uint64_t kMostBytes = uint64_t{1} << 32;

uint64_t header_sum(const RecordHeader& header) {
  return checksum(std::as_bytes(std::span(&header, 1)).first(offsetof(RecordHeader, header_sum)));
}

}  // namespace

uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t RecordHeader::record_bytes() const {
  const uint64_t bytes = sizeof(RecordHeader) + payload_bytes();
  return (bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment;
}

bool is_sound(const RecordHeader& header) {
  return header.magic == kMagic && header.header_sum == header_sum(header) && header.n_tokens >= 1 &&
         header.n_tokens <= kMostBlockTokens && header.block_bytes <= kMostBytes && header.state_bytes <= kMostBytes;
}

void seal(RecordHeader& header, std::span<const std::byte> payload) {
  header.magic = kMagic;
  header.payload_sum = checksum(payload);
  header.header_sum = header_sum(header);
}

bool fits(const RecordHeader& header, std::span<const std::byte> payload) {
  return payload.size() == header.payload_bytes() && checksum(payload) == header.payload_sum;
}

}  // namespace candor::prefix_store
