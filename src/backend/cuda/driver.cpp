#include "backend/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace candor::backend::cuda {
namespace {

struct Remedy {
  DriverStatus status;
  ErrorKind kind;
  const char* text;
};

constexpr const char* kOwnFault =
    "a kernel failed, which is a fault of this program or of the card; the process cannot use the GPU any more, start "
    "it again";
constexpr const char* kCardFault = "the card reports a fault of its memory or links: see nvidia-smi -q";
constexpr const char* kNoCode =
    "this program holds no machine code that the card runs: compute capability 8.0 or newer is needed";
constexpr const char* kOldForPtx = "the driver is too old to compile kernels for this card: install a newer one";

// CUDA_ERROR_* by number.
constexpr Remedy kRemedies[] = {
    {2, ErrorKind::kOutOfMemory, "memory is used up: see nvidia-smi for other processes"},
    {3, ErrorKind::kInternal, nullptr},
    {34, ErrorKind::kUnsupported, "libcuda.so.1 is a stub that programs are linked with: install the driver itself"},
    {46, ErrorKind::kBusy, "another process has the GPU for itself: see nvidia-smi (compute mode)"},
    {100, ErrorKind::kUnsupported, "no NVIDIA GPU is visible: see nvidia-smi -L, and CUDA_VISIBLE_DEVICES"},
    {101, ErrorKind::kUnsupported, "the GPU is not visible: see nvidia-smi -L, and CUDA_VISIBLE_DEVICES"},
    {200, ErrorKind::kUnsupported, kNoCode},
    {209, ErrorKind::kUnsupported, kNoCode},
    {214, ErrorKind::kIo, kCardFault},
    {220, ErrorKind::kIo, kCardFault},
    {218, ErrorKind::kUnsupported, kOldForPtx},
    {221, ErrorKind::kUnsupported, "the driver's compiler is missing: install libnvidia-ptxjitcompiler"},
    {222, ErrorKind::kUnsupported, kOldForPtx},
    {223, ErrorKind::kUnsupported, "the card needs kernels to be compiled, which CUDA_DISABLE_PTX_JIT forbids"},
    {700, ErrorKind::kInternal, kOwnFault},
    {701, ErrorKind::kInternal, "a kernel asks for more registers or shared memory than the card has"},
    {702, ErrorKind::kBusy, "the system stopped a kernel that ran too long: use a GPU without a display"},
    {714, ErrorKind::kInternal, kOwnFault},
    {715, ErrorKind::kInternal, kOwnFault},
    {716, ErrorKind::kInternal, kOwnFault},
    {717, ErrorKind::kInternal, kOwnFault},
    {718, ErrorKind::kInternal, kOwnFault},
    {719, ErrorKind::kInternal, kOwnFault},
    {802, ErrorKind::kBusy, "the system is not ready: is nvidia-fabricmanager running?"},
    {803, ErrorKind::kUnsupported, "the driver's kernel module and library differ in version: restart the machine"},
    {804, ErrorKind::kUnsupported, "the compatibility package does not serve this card: install a newer driver"},
    {999, ErrorKind::kInternal, "the driver does not say why: see the system's log, and whether nvidia-smi works"},
};

std::string words_of(DriverStatus (*call)(DriverStatus, const char**), DriverStatus status) {
  const char* words = nullptr;
  return call != nullptr && call(status, &words) == 0 && words != nullptr ? words : "";
}

Result<int32_t> attribute(const DriverFunctions& driver, DriverOrdinal device, DriverAttribute name) {
  int32_t value = 0;
  const DriverStatus status = driver.device_attribute(&value, name, device);
  if (status != 0) return driver_failure(driver, status, "a property of the GPU was asked for");
  return value;
}

Result<DeviceInfo> describe(const DriverFunctions& driver, int32_t ordinal) {
  DriverOrdinal device = 0;
  std::array<char, 256> name{};
  size_t memory = 0;
  DriverStatus status = driver.device(&device, ordinal);
  if (status == 0) status = driver.device_name(name.data(), static_cast<int32_t>(name.size() - 1), device);
  if (status == 0) status = driver.device_memory(&memory, device);
  if (status != 0) return driver_failure(driver, status, fmt::format("GPU {}", ordinal));
  DeviceInfo info{.name = name.data(), .memory_bytes = memory};
  CANDOR_ASSIGN(info.major, attribute(driver, device, driver::kMajor));
  CANDOR_ASSIGN(info.minor, attribute(driver, device, driver::kMinor));
  CANDOR_ASSIGN(info.n_processors, attribute(driver, device, driver::kProcessorCount));
  CANDOR_ASSIGN(const int32_t shared, attribute(driver, device, driver::kMaxSharedBytes));
  info.max_shared_bytes = static_cast<uint32_t>(std::max(shared, 0));
  return info;
}

}  // namespace

Result<DriverFunctions> load_driver(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = ::dlerror();
    return fail(ErrorKind::kUnsupported,
                fmt::format("no driver of NVIDIA is installed ({}): install it, or use the CPU",
                            words != nullptr ? words : library));
  }
  DriverFunctions driver;
#define CANDOR_CUDA_LOAD(field, symbol, ...)                                                                  \
  driver.field = reinterpret_cast<DriverStatus (*)(__VA_ARGS__)>(::dlsym(handle, #symbol));                   \
  if (driver.field == nullptr) {                                                                              \
    return fail(ErrorKind::kUnsupported, fmt::format("the driver of NVIDIA is too old: {} lacks {}, install " \
                                                     "one for CUDA 13 (580 or newer)",                        \
                                                     library, #symbol));                                      \
  }
  CANDOR_CUDA_DRIVER_CALLS(CANDOR_CUDA_LOAD)
#undef CANDOR_CUDA_LOAD
  return driver;
}

std::string version_text(int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

Result<DriverReport> report_driver(const DriverFunctions& driver) {
  DriverReport report;
  int32_t n_devices = 0;
  DriverStatus status = driver.init(0);
  if (status == 0) status = driver.version(&report.version);
  if (status == 0) status = driver.device_count(&n_devices);
  if (status == 0 && n_devices == 0) status = driver::kNoDevice;
  if (status != 0) return driver_failure(driver, status, "the driver of NVIDIA does not start");
  for (int32_t i = 0; i < n_devices; ++i) {
    CANDOR_ASSIGN(DeviceInfo info, describe(driver, i));
    report.devices.push_back(std::move(info));
  }
  return report;
}

Result<void> check_version(int32_t driver_version, int32_t compiler_version) {
  const int32_t needed = compiler_version / 1000 * 1000;
  if (driver_version >= needed) return {};
  return fail(
      ErrorKind::kUnsupported,
      fmt::format("the driver of NVIDIA is too old: it runs CUDA up to {}, and the kernels of this program "
                  "need {}; install a newer one{}",
                  version_text(driver_version), version_text(needed), needed == 13000 ? " (580 or newer)" : ""));
}

Error driver_failure(const DriverFunctions& driver, DriverStatus status, const std::string& what) {
  const std::string name = words_of(driver.error_name, status);
  const std::string text = words_of(driver.error_text, status);
  std::string message = what + ": " + (name.empty() ? fmt::format("error {}", status) : name);
  if (!text.empty()) message += " (" + text + ")";
  const auto remedy = std::find_if(std::begin(kRemedies), std::end(kRemedies),
                                   [status](const Remedy& known) { return known.status == status; });
  if (remedy == std::end(kRemedies)) return fail(ErrorKind::kInternal, message);
  if (remedy->text != nullptr) message += std::string(": ") + remedy->text;
  return fail(remedy->kind, message);
}

}  // namespace candor::backend::cuda
