#pragma once
// A program that was linked in as bytes, as a descriptor that can be executed: in memory where the system allows it,
// else an unlinked temporary file. No path is looked up and none stays behind.

#include <cstddef>
#include <span>

#include "base/error.h"

namespace candor::sandbox {

// Owns a descriptor; -1: none. Those made here are above 2 and closed on exec.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // Above the standard ones, where the process was started without some of them.
  void raise();

 private:
  int release();
  int number_ = -1;
};

Result<Descriptor> program_in_memory(std::span<const std::byte> program);
Result<Descriptor> program_in_temporary_file(std::span<const std::byte> program);

}  // namespace candor::sandbox
