#pragma once
// Memory for the tensors of a model file (model_file.h) whose bytes differ from those on disk, in huge pages where they
// are large. A copy is filled either once, by the caller that adds it, or by its CopySource each time it is to be read;
// the second kind is released from memory as it is read. Addresses hold until drop(). One thread at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::formats {

// What writes a copy, all of its bytes, and what it reads meanwhile.
struct CopySource {
  std::function<Result<void>(std::byte* to)> write;
  std::vector<std::span<const std::byte>> bytes{};
};

// Writes out of n_bytes that `made` writes first, into memory that is there meanwhile.
CopySource behind(const CopySource& made, size_t n_bytes,
                  std::function<void(const std::byte* from, std::byte* to)> write);

class TensorCopies {
 public:
  // Zeros. tensor: for the error where the system has no memory.
  Result<std::byte*> add(size_t n_bytes, std::string_view tensor);
  // To be written by make().
  Result<const std::byte*> add(size_t n_bytes, std::string_view tensor, CopySource source);

  // The source of the copy that the part lies in; nullptr where there is none.
  const CopySource* source_of(std::span<const std::byte> part) const;
  // What is read when the part is: all that its copy is made of, or itself where it lies in none.
  std::vector<std::span<const std::byte>> read_for(std::span<const std::byte> part) const;
  // Writes the copy that the part lies in, unless the part is in memory: true if it was written.
  Result<bool> make(std::span<const std::byte> part);
  // Whatever make() has written up to the end of the part is not needed any more.
  void release(std::span<const std::byte> part);

  // The most bytes that are in memory at the same time, where copies are read one after another.
  uint64_t n_bytes() const { return standing_bytes_ + largest_made_; }
  void drop();

 private:
  struct Copy {
    platform::HugeBuffer buffer;
    CopySource source;
    bool is_made = false;
    size_t released = 0;  // bytes from the beginning
  };
  Result<Copy*> add_copy(size_t n_bytes, std::string_view tensor);
  Copy* find(std::span<const std::byte> part);

  std::map<const std::byte*, Copy, std::less<>> copies_;
  uint64_t standing_bytes_ = 0;
  uint64_t largest_made_ = 0;
};

}  // namespace candor::formats
