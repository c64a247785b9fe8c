#include "backend/cuda/emulation/kernel_table.h"

#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {

#define CANDOR_CUDA_DECLARE(name, Args) void name(const Args& args);
CANDOR_CUDA_KERNELS(CANDOR_CUDA_DECLARE)
#undef CANDOR_CUDA_DECLARE

namespace emulation {

#define CANDOR_CUDA_ENTRY(name, Args) \
  KernelEntry{#name, sizeof(Args), [](const void* args) { cuda::name(*static_cast<const Args*>(args)); }},
static constexpr KernelEntry kKernels[] = {CANDOR_CUDA_KERNELS(CANDOR_CUDA_ENTRY)};
#undef CANDOR_CUDA_ENTRY

std::span<const KernelEntry> kernel_table() {
  return kKernels;
}

}  // namespace emulation
}  // namespace candor::backend::cuda
