#pragma once
// The CPU: kernels of the fastest instruction set, weights packed at load, paged K and V in bf16, and the compute
// threads. Same bits for every number of threads, batch, chunking and instruction set (numerics.md).

#include <memory>
#include <string>

#include "backend/backend.h"

namespace candor::backend {

struct CpuOptions {
  int32_t n_threads = 0;  // 0 = as platform::advise_threads() says; the calling thread counts
  std::string isa;        // name of a kernel table; "" = CANDOR_ISA, or else the fastest that runs here
};

// Refuses a thread count out of range and an instruction set that is unknown or can't run here.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace candor::backend
