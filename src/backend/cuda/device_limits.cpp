#include "backend/cuda/device_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

constexpr int64_t kBytes = int64_t{64} << 20;
constexpr int32_t kPieces = 32;  // of a thread
constexpr uint32_t kProbeThreads = 256;
constexpr int kRuns = 3;
// A run as long as this is not of launching alone.
constexpr double kLeastSeconds = 2e-3;
constexpr int32_t kMostRounds = 1 << 20;
constexpr double kMmaOps = 2.0 * 16 * 8 * 32;

double seconds_of(Device& device, Kernel<OpsProbeArgs> kernel, const Launch& launch, const OpsProbeArgs& args) {
  device.wait();
  const auto begin = std::chrono::steady_clock::now();
  device.run(kernel, launch, args);
  device.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Rounds a second, of all threads together.
double rounds_a_second(Device& device, Kernel<OpsProbeArgs> kernel, uint32_t n_blocks) {
  const Launch launch{.x = n_blocks, .n_threads = kProbeThreads};
  auto memory = DeviceMemory::make(device, size_t{n_blocks} * kProbeThreads * sizeof(uint32_t));
  if (!memory) return 0.0;
  double best = 0.0;
  OpsProbeArgs args{memory->as<uint32_t>(), 1};
  for (int run = 0; run < kRuns; ++run) {
    double seconds = seconds_of(device, kernel, launch, args);
    while (seconds < kLeastSeconds && args.n < kMostRounds) {
      args.n *= 4;
      seconds = seconds_of(device, kernel, launch, args);
    }
    best = std::max(best, args.n / seconds);
  }
  return best * n_blocks;
}

}  // namespace

double measure_reads(Device& device) {
  constexpr int64_t kReaders = kBytes / 16 / kPieces;
  auto memory = DeviceMemory::make(device, kBytes);
  auto sums = DeviceMemory::make(device, kReaders * sizeof(uint32_t));
  if (!memory || !sums) return 0.0;
  device.clear(memory->data(), kBytes);
  double best = 0.0;
  for (int run = 0; run < kRuns; ++run) {
    device.wait();
    const auto begin = std::chrono::steady_clock::now();
    device.run(kernel::read_probe, {.x = kReaders / kProbeThreads, .n_threads = kProbeThreads},
               ReadProbeArgs{memory->data(), sums->as<uint32_t>(), kReaders, kPieces});
    device.wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    best = std::max(best, static_cast<double>(kBytes) / seconds.count());
  }
  return best;
}

DeviceLimits measure_device_limits(Device& device) {
  constexpr double kWarps = kProbeThreads / 32;
  constexpr double kProductsOfRound = 4, kChains = 8;
  const auto n_blocks = static_cast<uint32_t>(std::max(1, device.info().n_processors)) * 4;
  return {.read_bytes = measure_reads(device),
          .int8_ops = rounds_a_second(device, kernel::int8_probe, n_blocks) * kWarps * kProductsOfRound * kMmaOps,
          .f32_flops = rounds_a_second(device, kernel::fma_probe, n_blocks) * kProbeThreads * kChains * 2.0};
}

}  // namespace candor::backend::cuda
