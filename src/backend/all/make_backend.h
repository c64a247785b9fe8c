#pragma once
// Makes the backend of a name ("cpu", "cuda", "reference"). The only module that depends on concrete ones.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "base/error.h"

namespace candor::backend {

struct BackendOptions {
  int32_t n_threads = 0;  // 0 = as many as platform::topology() advises
  int32_t rank_here = 0;  // of the ranks on this host, which take its GPUs in turn
  std::string note{};     // of BackendInfo, of "cpu"
};

// Whether the program has kernels for GPUs.
bool has_gpu_kernels();

// name: "cpu", "cuda" or "reference"; an unknown name is refused with the list. "cuda" is refused in a program without
// kernels for GPUs, and where no GPU can be opened.
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options);

}  // namespace candor::backend
