#pragma once
// Reads little-endian fields from bytes, with bounds checks. Every length is compared with the bytes that remain, by
// subtraction, before it is used. An error is one line, "FILE: offset N: CONTEXT: reason"; the parser sets the context
// ("key 'x'"). Borrows bytes and name. One thread.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace candor::formats::gguf {

class ByteSource {
 public:
  ByteSource(std::span<const std::byte> bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  uint64_t offset() const { return offset_; }
  uint64_t size() const { return bytes_.size(); }
  uint64_t remaining() const { return bytes_.size() - offset_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view file() const { return file_; }

  void set_context(std::string context) { context_ = std::move(context); }

  // what: names the field in the error when too few bytes remain.
  template <class T>
  Result<T> number(std::string_view what) {
    if (remaining() < sizeof(T)) return cut_short(what, sizeof(T));
    T value{};
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // A u64 length and that many bytes, which stay in the file.
  Result<std::string_view> text(std::string_view what);

  Error error_at(uint64_t offset, ErrorKind kind, std::string_view reason) const;
  Error invalid_at(uint64_t offset, std::string_view reason) const {
    return error_at(offset, ErrorKind::kInvalidInput, reason);
  }

 private:
  Error cut_short(std::string_view what, uint64_t needed) const;

  std::span<const std::byte> bytes_;
  std::string_view file_;
  std::string context_;
  uint64_t offset_ = 0;
};

}  // namespace candor::formats::gguf
