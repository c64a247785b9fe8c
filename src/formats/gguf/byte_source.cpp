#include "formats/gguf/byte_source.h"

#include <fmt/format.h>

#include "formats/quote.h"

namespace candor::formats::gguf {

Result<std::string_view> ByteSource::text(std::string_view what) {
  const uint64_t start = offset_;
  CANDOR_ASSIGN(const uint64_t length, number<uint64_t>(what));
  if (length > remaining()) {
    return invalid_at(start, fmt::format("{} says {} bytes, but {} remain: the file is cut short or damaged", what,
                                         length, remaining()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + offset_), length);
  offset_ += length;
  return text;
}

Error ByteSource::error_at(uint64_t offset, ErrorKind kind, std::string_view reason) const {
  const std::string_view separator = context_.empty() ? "" : ": ";
  return {kind, fmt::format("{}: offset {}: {}{}{}", in_quotes(file_), offset, context_, separator, reason)};
}

Error ByteSource::cut_short(std::string_view what, uint64_t needed) const {
  return invalid_at(offset_, fmt::format("{} needs {} bytes, but {} remain: the file is cut short; download it again",
                                         what, needed, remaining()));
}

}  // namespace candor::formats::gguf
