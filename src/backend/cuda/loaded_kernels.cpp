#include "backend/cuda/loaded_kernels.h"

#include "backend/cuda/kernels/kernel_list.h"
#include "base/error.h"

namespace candor::backend::cuda {
namespace {

constexpr const char* kKernelNames[] = {
#define CANDOR_CUDA_NAME(name, Args) #name,
    CANDOR_CUDA_KERNELS(CANDOR_CUDA_NAME)
#undef CANDOR_CUDA_NAME
};

}  // namespace

LoadedKernels::Missing LoadedKernels::load(std::span<const DriverHandle> modules) {
  for (const char* name : kKernelNames) {
    Loaded kernel;
    DriverStatus status = driver::kNotFound;
    for (size_t i = 0; i < modules.size() && status == driver::kNotFound; ++i) {
      status = driver_->module_function(&kernel.function, modules[i], name);
    }
    if (status != 0) return {status, name};
    kernels_.emplace(name, kernel);
  }
  return {};
}

DriverStatus LoadedKernels::prepare(const char* kernel, const Launch& launch, DriverHandle* function) {
  const auto found = kernels_.find(kernel);
  CANDOR_CHECK(found != kernels_.end());
  Loaded& loaded = found->second;
  *function = loaded.function;
  if (launch.shared_bytes <= loaded.shared_bytes) return 0;
  const DriverStatus status = driver_->set_function_attribute(loaded.function, driver::kDynamicSharedBytes,
                                                              static_cast<int32_t>(launch.shared_bytes));
  if (status == 0) loaded.shared_bytes = launch.shared_bytes;
  return status;
}

}  // namespace candor::backend::cuda
