#pragma once
// Memory of a model file's copies (model_file.h): tensors whose bytes are not those on disk. Large ones stand in huge
// pages, and pages that nobody has written take no memory. Addresses hold until drop().

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::formats {

class TensorCopies {
 public:
  // Zeros. tensor: for the error where the system has no memory.
  Result<std::byte*> add(size_t n_bytes, std::string_view tensor);
  uint64_t n_bytes() const;
  void drop() { buffers_.clear(); }

 private:
  std::vector<platform::HugeBuffer> buffers_;
};

}  // namespace candor::formats
