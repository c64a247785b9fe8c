#pragma once
// The kernels of kernel_list.h as functions of the driver, from the modules that hold them. One thread. The device's
// context is current at every call.

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "backend/cuda/driver.h"
#include "backend/cuda/launch.h"

namespace candor::backend::cuda {

class LoadedKernels {
 public:
  // driver outlives it.
  explicit LoadedKernels(const DriverFunctions& driver) : driver_(&driver) {}

  struct Missing {
    DriverStatus status = 0;       // driver::kNotFound: no module holds it
    const char* kernel = nullptr;  // that cannot be had
  };
  // Looks up all. status 0: there they are.
  Missing load(std::span<const DriverHandle> modules);

  // The function, which may then be launched so. REQUIRES: a kernel of the list.
  DriverStatus prepare(const char* kernel, const Launch& launch, DriverHandle* function);

 private:
  // A kernel has this much shared memory without asking.
  static constexpr uint32_t kPlainSharedBytes = 48 * 1024;
  struct Loaded {
    DriverHandle function = nullptr;
    uint32_t shared_bytes = kPlainSharedBytes;  // that it may use
  };

  const DriverFunctions* driver_;
  std::unordered_map<std::string_view, Loaded> kernels_{};
};

}  // namespace candor::backend::cuda
