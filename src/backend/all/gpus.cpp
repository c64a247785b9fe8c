#include "backend/all/gpus.h"

#include <fmt/format.h>

#include <filesystem>

#ifdef CANDOR_HAS_CUDA
#include "backend/cuda/arithmetic_check.h"
#include "backend/cuda/device_limits.h"
#include "backend/cuda/driver_device.h"
#endif

namespace candor::backend {

#ifdef CANDOR_HAS_CUDA
namespace {

// The line of a card that opens, or what it does not do.
GpuFinding examine(int32_t ordinal, const cuda::DeviceInfo& info, const cuda::DriverFunctions& driver,
                   int32_t version) {
  GpuFinding finding{fmt::format("{}: {}, {:.1f} GB, compute capability {}.{}; driver for CUDA {}", ordinal, info.name,
                                 static_cast<double>(info.memory_bytes) * 1e-9, info.major, info.minor,
                                 cuda::version_text(version))};
  auto device = cuda::open_driver_device(ordinal, driver, cuda::embedded_kernels());
  if (!device) {
    finding.problem = device.error().message;
    return finding;
  }
  const double free_bytes = static_cast<double>((*device)->info().free_bytes);
  const auto report = cuda::check_arithmetic(**device, 100000);
  if (!report) {
    finding.problem = report.error().message;
  } else if (report->n_wrong > 0) {
    finding.problem = fmt::format("{} of {} operations differ from the processor's: {}", report->n_wrong,
                                  report->n_operations, report->first);
  } else {
    finding.value += fmt::format("; {:.1f} GB free; computes as the processor does ({:.1f} million operations)",
                                 free_bytes * 1e-9, static_cast<double>(report->n_operations) * 1e-6);
  }
  return finding;
}

}  // namespace

std::vector<GpuFinding> examine_gpus() {
  const auto driver = cuda::load_driver();
  if (!driver) return {{"none: " + driver.error().message}};
  const auto report = cuda::report_driver(*driver);
  if (!report) return {{"none", report.error().message}};
  std::vector<GpuFinding> findings;
  for (size_t i = 0; i < report->devices.size(); ++i) {
    findings.push_back(examine(static_cast<int32_t>(i), report->devices[i], *driver, report->version));
  }
  return findings;
}

std::vector<GpuLimits> measure_gpus() {
  const auto driver = cuda::load_driver();
  if (!driver) return {};
  const auto report = cuda::report_driver(*driver);
  if (!report) return {};
  std::vector<GpuLimits> all;
  for (size_t i = 0; i < report->devices.size(); ++i) {
    auto device = cuda::open_driver_device(static_cast<int32_t>(i), *driver, cuda::embedded_kernels());
    if (!device) continue;
    const cuda::DeviceLimits limits = cuda::measure_device_limits(**device);
    all.push_back({report->devices[i].name, report->devices[i].memory_bytes, limits.read_bytes, limits.int8_ops,
                   limits.f32_flops});
  }
  return all;
}

#else

std::vector<GpuLimits> measure_gpus() {
  return {};
}

std::vector<GpuFinding> examine_gpus() {
  std::error_code ignored;
  if (!std::filesystem::exists("/proc/driver/nvidia/version", ignored)) return {};
  return {{"not used: this program was built without kernels for NVIDIA's GPUs (-DCANDOR_CUDA=ON, docs/gpu.md)"}};
}

#endif

}  // namespace candor::backend
