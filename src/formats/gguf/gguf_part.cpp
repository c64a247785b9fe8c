#include "formats/gguf/gguf_part.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/checked.h"
#include "formats/gguf/gguf_format.h"

namespace candor::formats::gguf {
namespace {

Result<uint32_t> parse_version(ByteSource& source) {
  const uint64_t start = source.offset();
  CANDOR_ASSIGN(const uint32_t version, source.number<uint32_t>("the version"));
  if (version >= kMinVersion && version <= kMaxVersion) return version;
  std::string reason;
  if (version != 0 && (version & 0xffffu) == 0) {
    reason =
        fmt::format("this is a big-endian GGUF file (version field 0x{:08x}); a little-endian one is needed", version);
  } else {
    reason = fmt::format("GGUF version {} is not supported ({} to {} are); convert the model again", version,
                         kMinVersion, kMaxVersion);
  }
  return source.error_at(start, ErrorKind::kUnsupported, reason);
}

// A count that the remaining bytes cannot hold, or that is above our limit, is refused before anything is allocated.
Result<uint64_t> parse_count(ByteSource& source, std::string_view what, uint64_t min_entry_bytes, uint64_t limit) {
  const uint64_t start = source.offset();
  CANDOR_ASSIGN(const uint64_t count, source.number<uint64_t>(what));
  if (count > source.remaining() / min_entry_bytes) {
    return source.invalid_at(
        start, fmt::format("{} is {}, but the {} bytes that remain hold at most {}: the file is cut short or damaged",
                           what, count, source.remaining(), source.remaining() / min_entry_bytes));
  }
  if (count > limit) {
    return source.invalid_at(start, fmt::format("{} is {}, above the limit of {}", what, count, limit));
  }
  return count;
}

}  // namespace

Result<GgufPart> parse_part(std::span<const std::byte> bytes, std::string_view file) {
  constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 4 + 8;  // name of one byte, no dimension
  constexpr uint64_t kMinMetaBytes = 8 + 1 + 4 + 1;        // key of one byte, value of one byte
  ByteSource source(bytes, file);
  CANDOR_ASSIGN(const uint32_t magic, source.number<uint32_t>("the magic"));
  uint32_t expected_magic = 0;
  std::memcpy(&expected_magic, kMagic.data(), sizeof(expected_magic));
  if (magic != expected_magic) {
    return source.invalid_at(0, fmt::format("the magic is 0x{:08x}, not \"GGUF\": no GGUF file", magic));
  }
  GgufPart part;
  CANDOR_ASSIGN(part.version, parse_version(source));
  CANDOR_ASSIGN(const uint64_t n_tensors, parse_count(source, "the tensor count", kMinTensorBytes, kMaxTensors));
  CANDOR_ASSIGN(const uint64_t n_entries, parse_count(source, "the metadata count", kMinMetaBytes, kMaxMetaEntries));
  CANDOR_ASSIGN(Metadata metadata, parse_metadata(source, n_entries));
  part.metadata = std::move(metadata.entries);
  part.alignment = metadata.alignment;
  CANDOR_ASSIGN(part.tensors, parse_directory(source, n_tensors, part.alignment));
  part.data_offset = round_up<uint64_t>(source.offset(), part.alignment);
  return part;
}

}  // namespace candor::formats::gguf
