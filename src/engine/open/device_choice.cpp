#include "engine/open/device_choice.h"

#include <string_view>
#include <utility>

#include "engine/open/loaded_model.h"
#include "engine/open/memory_plan.h"
#include "engine/open/rank_group.h"

namespace candor::engine {
namespace {

constexpr std::string_view kAuto = "auto";

// nullptr where the model is none, or does not fit it.
std::unique_ptr<backend::Backend> fitting_device(EngineOptions options) {
  if (options.n_ranks > 1 || options.uses_mpi) return nullptr;
  options.backend = "cuda";
  auto device = make_ranked_backend(options);
  if (!device) return nullptr;
  const auto file = open_model_file(options);
  if (!file) return nullptr;
  const auto plan = plan_memory(options, **file, **device, nullptr);
  return plan && plan->fits() ? std::move(*device) : nullptr;
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> make_named_backend(const EngineOptions& options) {
  if (options.backend != kAuto) return make_ranked_backend(options);
  if (auto device = fitting_device(options)) return device;
  EngineOptions on_cpu = options;
  on_cpu.backend = "cpu";
  return make_ranked_backend(on_cpu);
}

}  // namespace candor::engine
