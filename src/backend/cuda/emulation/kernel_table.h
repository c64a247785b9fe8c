#pragma once
// The kernels of kernels/kernel_list.h as functions of the host. Any thread.

#include <cstddef>
#include <span>
#include <string_view>

namespace candor::backend::cuda::emulation {

struct KernelEntry {
  std::string_view name;
  size_t args_bytes;
  void (*call)(const void* args);  // one thread of it
};

std::span<const KernelEntry> kernel_table();

}  // namespace candor::backend::cuda::emulation
