#include "backend/all/make_backend.h"

#include <string>

#include "backend/cpu/cpu_backend.h"
#include "backend/reference/reference_backend.h"
#ifdef CANDOR_HAS_CUDA
#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/driver_device.h"
#endif

namespace candor::backend {
namespace {

Result<std::unique_ptr<Backend>> open_cuda([[maybe_unused]] const BackendOptions& options) {
#ifdef CANDOR_HAS_CUDA
  CANDOR_ASSIGN(auto device, cuda::open_device_of_rank(options.rank_here));
  return make_cuda_backend(std::move(device), {.n_threads = options.n_threads});
#else
  return fail(
      ErrorKind::kUnsupported,
      "this program computes on the CPU alone; the package candor-cuda, or a build with -DCANDOR_CUDA=ON, uses a GPU");
#endif
}

}  // namespace

bool has_gpu_kernels() {
#ifdef CANDOR_HAS_CUDA
  return true;
#else
  return false;
#endif
}

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return make_cpu_backend({.n_threads = options.n_threads, .note = options.note});
  if (name == "cuda") return open_cuda(options);
  if (name == "reference") return make_reference_backend();
  return fail(ErrorKind::kInvalidInput,
              "backend \"" + std::string(name) + "\" is unknown, expected one of: cpu, cuda, reference");
}

}  // namespace candor::backend
