#pragma once
// A device over NVIDIA's driver (driver.h): the card's own context, one stream of work, and the kernels of
// kernel_list.h from the images that the program carries. Threads: device.h; every call makes the context current for
// its own time.

#include <cstdint>
#include <memory>
#include <span>

#include "backend/cuda/device.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/kernels/images.h"
#include "base/error.h"

namespace candor::backend::cuda {

struct KernelImages {
  std::span<const candor_cuda_image> images;
  int32_t version = 0;  // of the compiler that made them: 13050 is 13.5
};
// What the program carries; none without -DCANDOR_CUDA=ON.
KernelImages embedded_kernels();

// ordinal: in the driver's order, among the cards that CUDA_VISIBLE_DEVICES leaves. Ranks of one host take them in
// turn: each has one for itself where there are enough, or where each sees its own alone. Errors: no driver, one that
// is too old, no such card, one older than compute capability 8.0, memory, and what the driver reports.
Result<std::unique_ptr<Device>> open_driver_device(int32_t ordinal);
Result<std::unique_ptr<Device>> open_driver_device(int32_t ordinal, const DriverFunctions& driver,
                                                   const KernelImages& kernels);
Result<std::unique_ptr<Device>> open_device_of_rank(int32_t rank_here);
Result<std::unique_ptr<Device>> open_device_of_rank(int32_t rank_here, const DriverFunctions& driver,
                                                    const KernelImages& kernels);

}  // namespace candor::backend::cuda
