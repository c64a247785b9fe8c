#include "backend/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace candor::backend::cuda {

DriverStatus Staging::open() {
  for (Part& part : parts_) {
    void* memory = nullptr;
    if (const DriverStatus status = driver_->allocate_host(&memory, kPartBytes, 0); status != 0) return status;
    part.memory = static_cast<std::byte*>(memory);
    if (const DriverStatus status = driver_->create_event(&part.event, driver::kEventWithoutTime); status != 0) {
      return status;
    }
  }
  return 0;
}

void Staging::close() {
  for (Part& part : parts_) {
    if (part.event != nullptr) driver_->destroy_event(part.event);
    if (part.memory != nullptr) driver_->release_host(part.memory);
    part = {};
  }
}

DriverStatus Staging::take_next_part(DriverHandle stream) {
  if (const DriverStatus status = driver_->record_event(parts_[part_].event, stream); status != 0) return status;
  parts_[part_].is_on_its_way = true;
  part_ = (part_ + 1) % parts_.size();
  used_ = 0;
  Part& next = parts_[part_];
  if (!next.is_on_its_way) return 0;
  next.is_on_its_way = false;
  return driver_->wait_event(next.event);
}

DriverStatus Staging::copy_in(DriverAddress dst, const void* src, size_t n_bytes, DriverHandle stream) {
  constexpr size_t kAlignment = 64;
  const std::byte* from = static_cast<const std::byte*>(src);
  while (n_bytes > 0) {
    if (used_ == kPartBytes) {
      if (const DriverStatus status = take_next_part(stream); status != 0) return status;
    }
    const size_t n = std::min(n_bytes, kPartBytes - used_);
    std::byte* const place = parts_[part_].memory + used_;
    std::memcpy(place, from, n);
    if (const DriverStatus status = driver_->copy_in(dst, place, n, stream); status != 0) return status;
    used_ = std::min(kPartBytes, (used_ + n + kAlignment - 1) / kAlignment * kAlignment);
    dst += n;
    from += n;
    n_bytes -= n;
  }
  return 0;
}

}  // namespace candor::backend::cuda
