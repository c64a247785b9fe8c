#pragma once
// A large zeroed block of memory: aligned to 2 MiB with huge pages asked for (madvise) when it is that large, to 4 KiB
// else. Pages are placed where they are first touched. Owns its memory; moves, never copies.

#include <cstddef>
#include <span>
#include <string_view>

#include "base/error.h"

namespace candor::platform {

class HugeBuffer {
 public:
  // `what` names the use in the error message ("K/V pages"). 0 bytes gives an empty buffer.
  static Result<HugeBuffer> allocate(size_t n_bytes, std::string_view what);

  HugeBuffer() = default;
  ~HugeBuffer();
  HugeBuffer(HugeBuffer&& other) noexcept;
  HugeBuffer& operator=(HugeBuffer&& other) noexcept;

  // The pages that end in a range of its bytes leave memory: zeros, should they be looked at again.
  struct Range {
    size_t begin, end;
  };
  void release(Range range) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return n_bytes_; }
  std::span<std::byte> bytes() { return {data_, n_bytes_}; }

 private:
  std::byte* data_ = nullptr;
  size_t n_bytes_ = 0;
  size_t mapped_bytes_ = 0;
};

}  // namespace candor::platform
