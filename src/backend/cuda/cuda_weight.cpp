#include "backend/cuda/cuda_weight.h"

#include <cstddef>

#include "base/error.h"

namespace candor::backend::cuda {

Result<std::unique_ptr<CudaWeight>> upload_weight(const TensorView& tensor, WeightRole role, Device& device,
                                                  cpu::WeightMemory& kept, platform::ThreadPool& pool) {
  cpu::WeightMemory passing;
  const bool is_kept = role != WeightRole::kLinear;
  CANDOR_ASSIGN(auto host, cpu::upload_weight(tensor, role, is_kept ? kept : passing, pool));
  const kernels::WeightShape shape = host->shape();
  DeviceMemory memory;
  if (role != WeightRole::kEmbedding) {
    const void* src = role == WeightRole::kVector ? static_cast<const void*>(host->values()) : host->panels();
    CANDOR_ASSIGN(memory, DeviceMemory::make(device, host->n_bytes(), MemoryUse::kWeights));
    device.copy_in(memory.data(), src, host->n_bytes());
  }
  if (!is_kept) host.reset();
  return std::make_unique<CudaWeight>(shape, std::move(host), std::move(memory));
}

}  // namespace candor::backend::cuda
