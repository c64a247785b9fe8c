#include "engine/open/device_choice.h"

#include <string>
#include <string_view>
#include <utility>

#include "backend/all/make_backend.h"
#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_group.h"
#include "engine/open/rank_places.h"
#include "engine/open/shared_device.h"

namespace candor::engine {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kGpu = "cuda";

using MadeBackend = Result<std::unique_ptr<backend::Backend>>;

MadeBackend make_on(EngineOptions options, std::string_view device) {
  options.backend = device;
  return make_ranked_backend(options);
}

bool has_ranks(const EngineOptions& options) {
  return options.n_ranks > 1 || options.uses_mpi;
}

// The whole model, or what the host leaves.
MadeBackend make_on_gpu(const EngineOptions& options) {
  CANDOR_ASSIGN(auto device, make_on(options, kGpu));
  if (has_ranks(options)) return device;
  CANDOR_ASSIGN(const auto file, open_model_file(options));
  CANDOR_ASSIGN(const MemoryPlan plan, plan_memory(options, *file, *device, nullptr));
  if (plan.fits() && !options.gpu_layers && !options.cpu_experts) return device;
  CANDOR_ASSIGN(auto host, make_on(options, "cpu"));
  return share_with_host(options, *file, std::move(device), std::move(host));
}

Result<void> check(const EngineOptions& options) {
  if (!options.gpu_layers && !options.cpu_experts) return {};
  const char* field = options.gpu_layers ? "gpu_layers" : "cpu_experts";
  const std::string name = options.gpu_layers ? "gpu_layers (--gpu-layers)" : "cpu_experts (--cpu-experts)";
  if (options.backend != kGpu && options.backend != kAuto)
    return fail(ErrorKind::kInvalidInput, name + " is for a model on a GPU (--device cuda)", field);
  if (has_ranks(options))
    return fail(ErrorKind::kUnsupported, name + ": ranks have a GPU each, and the whole of their part on it", field);
  return {};
}

}  // namespace

std::string settled_device(const std::string& device) {
  return device == kAuto && !backend::has_gpu_kernels() ? "cpu" : device;
}

Result<std::unique_ptr<backend::Backend>> make_named_backend(const EngineOptions& options) {
  CANDOR_TRY(check(options));
  if (options.backend == kGpu || options.gpu_layers || options.cpu_experts) return make_on_gpu(options);
  if (options.backend != kAuto) return make_ranked_backend(options);
  if (has_ranks(options) || !backend::has_gpu_kernels()) return make_on(options, "cpu");
  auto device = make_on_gpu(options);
  if (device) return device;
  return backend::make_backend("cpu", {.n_threads = all_threads(options), .note = "no GPU: " + device.error().message});
}

}  // namespace candor::engine
