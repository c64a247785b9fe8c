#include "formats/tensor_copies.h"

#include <utility>

#include <fmt/format.h>

#include "formats/quote.h"

namespace candor::formats {

Result<std::byte*> TensorCopies::add(size_t n_bytes, std::string_view tensor) {
  CANDOR_ASSIGN(auto buffer, platform::HugeBuffer::allocate(n_bytes, fmt::format("tensor {}", in_quotes(tensor))));
  return buffers_.emplace_back(std::move(buffer)).data();
}

uint64_t TensorCopies::n_bytes() const {
  uint64_t total = 0;
  for (const platform::HugeBuffer& buffer : buffers_) total += buffer.size();
  return total;
}

}  // namespace candor::formats
