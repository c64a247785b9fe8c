#include "engine/open/shared_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "backend/mixed/mixed_backend.h"
#include "backend/placement.h"
#include "engine/open/memory_plan.h"
#include "model/arch_spec.h"
#include "model/model.h"
#include "model/placement.h"
#include "model/placement_plan.h"

namespace candor::engine {
namespace {

using backend::Side;

// Of a card's memory, for what its driver takes besides.
constexpr uint64_t kSpareBytes = uint64_t{256} << 20;
// What a part costs besides its bytes: the launches of its operations, the joins of its threads.
constexpr double kDevicePartSeconds = 40e-6;
constexpr double kHostPartSeconds = 40e-6;
// A row that goes over, with the wait for what made it.
constexpr double kCrossingSeconds = 30e-6;
// Behind so many tokens a step's reads are counted.
constexpr int64_t kUsualPast = 1024;
// Where nothing could be measured: ordinary memory, and a card's.
constexpr double kUsualHostBytes = 20e9;
constexpr double kUsualDeviceBytes = 300e9;

struct Needs {
  model::ArchSpec spec;
  model::PlacementNeeds parts;
  uint64_t free_bytes = 0;  // of the device, for parts
};

Result<Needs> needs_of(const EngineOptions& options, const formats::ModelFile& file, const backend::Backend& device) {
  Needs needs;
  CANDOR_ASSIGN(needs.spec, model::read_arch(file));
  CANDOR_ASSIGN(const MemoryPlan plan, plan_memory(options, file, device, nullptr));
  CANDOR_ASSIGN(needs.parts.bytes, model::part_bytes(file, device, options.n_ctx));
  const KvType kv = options.kv_type.value_or(model::usual_kv(needs.spec, device.info().default_kv));
  needs.parts.memory =
      model::part_memory(needs.spec, kv, {plan.kv_blocks, plan.state_slots}, std::min<int64_t>(kUsualPast, plan.n_ctx));
  const uint64_t taken = plan.scratch_bytes + kSpareBytes;
  needs.free_bytes = device.info().free_bytes > taken ? device.info().free_bytes - taken : 0;
  return needs;
}

double measured(backend::Backend& side, double otherwise) {
  const double speed = side.read_bytes_per_s();
  return speed > 0.0 ? speed : otherwise;
}

model::PlacementCosts costs_of(backend::Backend& device, backend::Backend& host) {
  return {.device = {measured(device, kUsualDeviceBytes), kDevicePartSeconds},
          .host = {measured(host, kUsualHostBytes), kHostPartSeconds},
          .crossing_s = kCrossingSeconds};
}

uint64_t device_bytes(const backend::Placement& placement, const Needs& needs) {
  uint64_t total = model::bytes_on(Side::kDevice, placement, needs.parts.bytes);
  for (size_t i = 0; i < needs.parts.memory.blocks.size(); ++i) {
    const bool is_there = i < placement.blocks.size() && placement.blocks[i] == Side::kDevice;
    if (is_there) total += needs.parts.memory.blocks[i];
  }
  return total;
}

Result<backend::Placement> chosen(const EngineOptions& options, const Needs& needs) {
  const backend::Placement placement = model::place_layers(
      needs.spec, {options.gpu_layers.value_or(std::numeric_limits<int32_t>::max()), options.cpu_experts.value_or(0)});
  const uint64_t wanted = device_bytes(placement, needs);
  if (wanted <= needs.free_bytes) return placement;
  return fail(ErrorKind::kOutOfMemory,
              fmt::format("the GPU would hold {} of the model, and has {} for it; choose fewer layers with "
                          "--gpu-layers, leave experts on the CPU with --cpu-experts, or neither",
                          gigabytes(wanted), gigabytes(needs.free_bytes)));
}

std::string text_of(const backend::Placement& placement, const Needs& needs, const backend::BackendInfo& device,
                    const backend::BackendInfo& host) {
  const auto n_on_device = std::ranges::count(placement.blocks, Side::kDevice);
  const auto n_experts = std::ranges::count(placement.experts, Side::kHost);
  return fmt::format("{}: {} of {} blocks{}, {}; {}: the rest{}", device.description, n_on_device,
                     needs.spec.blocks.size(), placement.output == Side::kDevice ? " and the output" : "",
                     gigabytes(device_bytes(placement, needs)), host.description,
                     n_experts > n_on_device ? "" : fmt::format(", experts of {} blocks among it", n_experts));
}

}  // namespace

Result<std::unique_ptr<backend::Backend>> share_with_host(const EngineOptions& options, const formats::ModelFile& file,
                                                          std::unique_ptr<backend::Backend> device,
                                                          std::unique_ptr<backend::Backend> host) {
  CANDOR_ASSIGN(const Needs needs, needs_of(options, file, *device));
  backend::Placement placement;
  if (options.gpu_layers || options.cpu_experts) {
    CANDOR_ASSIGN(placement, chosen(options, needs));
  } else {
    placement = model::plan_placement(needs.spec, needs.parts, costs_of(*device, *host), needs.free_bytes).placement;
  }
  std::string text = text_of(placement, needs, device->info(), host->info());
  auto mixed = std::make_unique<backend::MixedBackend>(std::move(device), std::move(host));
  mixed->place_next(std::move(placement));
  mixed->describe(std::move(text));
  return mixed;
}

}  // namespace candor::engine
