#include "backend/cpu/weight_memory.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"

namespace candor::backend::cpu {
namespace {

constexpr size_t kLeastBuffer = size_t{32} << 20;  // what is never touched of it takes no memory
constexpr size_t kMatrixAlignment = 64;

}  // namespace

Result<WeightBytes> WeightMemory::take(size_t n_bytes, std::string_view what) {
  if (buffer_ == nullptr || n_bytes > buffer_->size() - n_taken_) {
    CANDOR_ASSIGN(platform::HugeBuffer buffer, platform::HugeBuffer::allocate(std::max(n_bytes, kLeastBuffer), what));
    buffer_ = std::make_shared<platform::HugeBuffer>(std::move(buffer));
    n_taken_ = 0;
  }
  WeightBytes bytes{.buffer = buffer_, .data = buffer_->data() + n_taken_, .size = n_bytes};
  n_taken_ = std::min(buffer_->size(), n_taken_ + round_up(n_bytes, kMatrixAlignment));
  return bytes;
}

}  // namespace candor::backend::cpu
