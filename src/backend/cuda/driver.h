#pragma once
// NVIDIA's driver, found at run time: a program that has this starts on machines without one. The functions are a plain
// table, so that tests put their own in place. What a call means is in NVIDIA's manual of the driver interface; names
// of types here are ours. Any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend/cuda/device.h"
#include "base/error.h"

namespace candor::backend::cuda {

// The interface's types on a 64-bit machine.
using DriverStatus = int32_t;    // CUresult: 0 is success
using DriverOrdinal = int32_t;   // CUdevice
using DriverAddress = uint64_t;  // CUdeviceptr
using DriverHandle = void*;  // CUcontext, CUmodule, CUfunction, CUstream, CUevent, CUgraph, CUgraphNode, CUgraphExec
using DriverAttribute = int32_t;  // CUdevice_attribute, CUfunction_attribute

// CUDA_KERNEL_NODE_PARAMS_v2.
struct DriverNodeParams {
  DriverHandle function = nullptr;
  uint32_t grid_x = 1, grid_y = 1, grid_z = 1;
  uint32_t block_x = 1, block_y = 1, block_z = 1;
  uint32_t shared_bytes = 0;
  void** values = nullptr;  // a pointer to each argument; the driver copies what they point to
  void** extra = nullptr;
  DriverHandle kernel = nullptr;   // where there is no function
  DriverHandle context = nullptr;  // nullptr: the current one
};
static_assert(sizeof(DriverNodeParams) == 72);

// Values of its enumerations that are used.
namespace driver {
inline constexpr DriverStatus kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotFound = 500;
inline constexpr DriverAttribute kProcessorCount = 16, kMajor = 75, kMinor = 76, kMaxSharedBytes = 97;
inline constexpr DriverAttribute kDynamicSharedBytes = 8;  // of a function
inline constexpr uint32_t kStreamNonBlocking = 1, kEventWithoutTime = 2;
}  // namespace driver

// X(field, symbol, types of the arguments...)
#define CANDOR_CUDA_DRIVER_CALLS(X)                                                                             \
  X(init, cuInit, uint32_t)                                                                                     \
  X(error_name, cuGetErrorName, DriverStatus, const char**)                                                     \
  X(error_text, cuGetErrorString, DriverStatus, const char**)                                                   \
  X(version, cuDriverGetVersion, int32_t*)                                                                      \
  X(device_count, cuDeviceGetCount, int32_t*)                                                                   \
  X(device, cuDeviceGet, DriverOrdinal*, int32_t)                                                               \
  X(device_name, cuDeviceGetName, char*, int32_t, DriverOrdinal)                                                \
  X(device_attribute, cuDeviceGetAttribute, int32_t*, DriverAttribute, DriverOrdinal)                           \
  X(device_memory, cuDeviceTotalMem_v2, size_t*, DriverOrdinal)                                                 \
  X(retain_context, cuDevicePrimaryCtxRetain, DriverHandle*, DriverOrdinal)                                     \
  X(release_context, cuDevicePrimaryCtxRelease_v2, DriverOrdinal)                                               \
  X(push_context, cuCtxPushCurrent_v2, DriverHandle)                                                            \
  X(pop_context, cuCtxPopCurrent_v2, DriverHandle*)                                                             \
  X(load_module, cuModuleLoadData, DriverHandle*, const void*)                                                  \
  X(unload_module, cuModuleUnload, DriverHandle)                                                                \
  X(module_function, cuModuleGetFunction, DriverHandle*, DriverHandle, const char*)                             \
  X(set_function_attribute, cuFuncSetAttribute, DriverHandle, DriverAttribute, int32_t)                         \
  X(memory_info, cuMemGetInfo_v2, size_t*, size_t*)                                                             \
  X(allocate, cuMemAlloc_v2, DriverAddress*, size_t)                                                            \
  X(release, cuMemFree_v2, DriverAddress)                                                                       \
  X(allocate_host, cuMemHostAlloc, void**, size_t, uint32_t)                                                    \
  X(release_host, cuMemFreeHost, void*)                                                                         \
  X(copy_in, cuMemcpyHtoDAsync_v2, DriverAddress, const void*, size_t, DriverHandle)                            \
  X(copy_out, cuMemcpyDtoHAsync_v2, void*, DriverAddress, size_t, DriverHandle)                                 \
  X(copy, cuMemcpyDtoDAsync_v2, DriverAddress, DriverAddress, size_t, DriverHandle)                             \
  X(set_bytes, cuMemsetD8Async, DriverAddress, uint8_t, size_t, DriverHandle)                                   \
  X(create_stream, cuStreamCreate, DriverHandle*, uint32_t)                                                     \
  X(destroy_stream, cuStreamDestroy_v2, DriverHandle)                                                           \
  X(synchronize, cuStreamSynchronize, DriverHandle)                                                             \
  X(create_event, cuEventCreate, DriverHandle*, uint32_t)                                                       \
  X(destroy_event, cuEventDestroy_v2, DriverHandle)                                                             \
  X(record_event, cuEventRecord, DriverHandle, DriverHandle)                                                    \
  X(wait_event, cuEventSynchronize, DriverHandle)                                                               \
  X(launch, cuLaunchKernel, DriverHandle, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, \
    DriverHandle, void**, void**)                                                                               \
  X(create_graph, cuGraphCreate, DriverHandle*, uint32_t)                                                       \
  X(add_kernel_node, cuGraphAddKernelNode_v2, DriverHandle*, DriverHandle, const DriverHandle*, size_t,         \
    const DriverNodeParams*)                                                                                    \
  X(set_kernel_node, cuGraphExecKernelNodeSetParams_v2, DriverHandle, DriverHandle, const DriverNodeParams*)    \
  X(instantiate_graph, cuGraphInstantiateWithFlags, DriverHandle*, DriverHandle, unsigned long long)            \
  X(launch_graph, cuGraphLaunch, DriverHandle, DriverHandle)                                                    \
  X(destroy_graph_exec, cuGraphExecDestroy, DriverHandle)                                                       \
  X(destroy_graph, cuGraphDestroy, DriverHandle)

struct DriverFunctions {
#define CANDOR_CUDA_FIELD(field, symbol, ...) DriverStatus (*field)(__VA_ARGS__) = nullptr;
  CANDOR_CUDA_DRIVER_CALLS(CANDOR_CUDA_FIELD)
#undef CANDOR_CUDA_FIELD
};

// The machine's driver; it stays loaded. library: what dlopen looks for.
Result<DriverFunctions> load_driver(const char* library = "libcuda.so.1");

// version: as the driver counts, 12040 is "12.4".
std::string version_text(int32_t version);

struct DriverReport {
  int32_t version = 0;
  std::vector<DeviceInfo> devices;  // in the driver's order; without free_bytes
};
// What the driver offers. It opens no device.
Result<DriverReport> report_driver(const DriverFunctions& driver);

// Whether the driver runs kernels that a compiler of this version made: one of the same major version or a newer one
// does.
Result<void> check_version(int32_t driver_version, int32_t compiler_version);

// "what: CUDA_ERROR_X (the driver's words)", and a remedy where there is one.
Error driver_failure(const DriverFunctions& driver, DriverStatus status, const std::string& what);

}  // namespace candor::backend::cuda
