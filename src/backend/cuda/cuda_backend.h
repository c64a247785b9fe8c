#pragma once
// A model's layers on an NVIDIA GPU, with the bits of the CPU (docs/gpu.md). What the host does beside it, packing
// weights and looking up tokens, uses the CPU's threads.

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/cuda/device.h"
#include "base/error.h"

namespace candor::backend {

struct CudaOptions {
  int32_t n_threads = 0;  // of the host; 0: as many as platform::advise_threads() says
};

Result<std::unique_ptr<Backend>> make_cuda_backend(std::unique_ptr<cuda::Device> device, const CudaOptions& options);

}  // namespace candor::backend
