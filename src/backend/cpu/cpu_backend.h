#pragma once
// The backend that computes on the CPU: kernels of the fastest instruction set, weights packed at load, paged K and V
// (bf16 unless chosen otherwise), and a pool of threads. Gives the same bits for every number of threads, batch,
// chunking and instruction set (docs/numerics.md).

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.h"

namespace candor::kernels {
struct KernelTable;
}

namespace candor::backend {

struct CpuOptions {
  int32_t n_threads = 0;                        // 0 = as platform::advise_threads() says; the calling thread counts
  const kernels::KernelTable* table = nullptr;  // nullptr = those of CANDOR_ISA, or else the fastest that run here
  std::string note{};                           // of BackendInfo
};

// Refuses a thread count out of range, and what CANDOR_ISA names and this machine lacks.
Result<std::unique_ptr<Backend>> make_cpu_backend(const CpuOptions& options);

}  // namespace candor::backend
