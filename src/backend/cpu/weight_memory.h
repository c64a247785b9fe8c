#pragma once
// Allocates the memory of packed weights. Weights lie one after another, 64-byte aligned, in buffers of 32 MiB or more
// with huge pages, so that small matrices (those of experts) use huge pages too without wasting the rest of one each. A
// buffer is freed with the last weight in it. One thread calls take(); weights may be freed on any thread.

#include <cstddef>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::backend::cpu {

struct WeightBytes {
  std::shared_ptr<platform::HugeBuffer> buffer{};
  std::byte* data = nullptr;  // aligned to 64 bytes
  size_t size = 0;
};

class WeightMemory {
 public:
  // n_bytes of zeros. what: names the weight in the error where memory runs out.
  Result<WeightBytes> take(size_t n_bytes, std::string_view what);

 private:
  std::shared_ptr<platform::HugeBuffer> buffer_{};
  size_t n_taken_ = 0;
};

}  // namespace candor::backend::cpu
