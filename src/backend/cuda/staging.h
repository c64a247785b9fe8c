#pragma once
// Pinned memory of the host through which bytes go to a device. The caller's memory may change as soon as a copy was
// asked for; the card fetches from here when its turn comes. One thread. The device's context is current at every call.

#include <array>
#include <cstddef>

#include "backend/cuda/driver.h"

namespace candor::backend::cuda {

class Staging {
 public:
  // driver outlives it.
  explicit Staging(const DriverFunctions& driver) : driver_(&driver) {}

  DriverStatus open();
  void close();
  DriverStatus copy_in(DriverAddress dst, const void* src, size_t n_bytes, DriverHandle stream);

 private:
  // A part is filled from its beginning; behind its last copy stands an event.
  struct Part {
    std::byte* memory = nullptr;
    DriverHandle event = nullptr;
    bool is_on_its_way = false;
  };
  static constexpr size_t kPartBytes = size_t{4} << 20;

  DriverStatus take_next_part(DriverHandle stream);

  const DriverFunctions* driver_;
  std::array<Part, 4> parts_{};
  size_t part_ = 0;
  size_t used_ = 0;  // bytes of parts_[part_]
};

}  // namespace candor::backend::cuda
