#pragma once
// Memory of weights: one after another in large buffers of huge pages, so that small ones (the matrices of experts)
// have them too, and none has its own unused rest of one. A buffer goes back when its last weight is gone.
// One thread takes; weights may end on any.

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
  // Zeros. what: whose they are, for the error.
  Result<WeightBytes> take(size_t n_bytes, std::string_view what);

 private:
  std::shared_ptr<platform::HugeBuffer> buffer_{};
  size_t n_taken_ = 0;
};

}  // namespace candor::backend::cpu
