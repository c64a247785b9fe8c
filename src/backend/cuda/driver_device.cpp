#include "backend/cuda/driver_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/launch_graphs.h"
#include "backend/cuda/loaded_kernels.h"
#include "backend/cuda/staging.h"

namespace candor::backend::cuda {
namespace {

constexpr int32_t kOldestMajor = 8;

DriverAddress address_of(const void* memory) {
  return reinterpret_cast<DriverAddress>(memory);
}

std::string gigabytes(uint64_t n_bytes) {
  return fmt::format("{:.2f} GB", static_cast<double>(n_bytes) * 1e-9);
}

std::string words_of(const char* kernel, const Launch& launch) {
  return fmt::format("the kernel {} ({} x {} x {} blocks of {} threads, {} bytes shared)", kernel, launch.x, launch.y,
                     launch.z, launch.n_threads, launch.shared_bytes);
}

class CurrentContext {
 public:
  CurrentContext(const DriverFunctions& driver, DriverHandle context)
      : driver_(&driver), status_(driver.push_context(context)) {}
  ~CurrentContext() {
    DriverHandle context = nullptr;
    if (status_ == 0) driver_->pop_context(&context);
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  DriverStatus status() const { return status_; }

 private:
  const DriverFunctions* driver_;
  DriverStatus status_;
};

class DriverDevice final : public Device {
 public:
  DriverDevice(int32_t ordinal, DeviceInfo info, const DriverFunctions& driver)
      : driver_(driver), info_(std::move(info)), label_(fmt::format("GPU {} ({})", ordinal, info_.name)) {}
  ~DriverDevice() override { close(); }

  Result<void> open(int32_t ordinal, const KernelImages& kernels);

  const DeviceInfo& info() const override { return info_; }
  Result<std::byte*> allocate(size_t n_bytes) override;
  void release(std::byte* memory) override;
  void copy_in(void* dst, const void* src, size_t n_bytes) override;
  void copy_out(void* dst, const void* src, size_t n_bytes) override;
  void copy(void* dst, const void* src, size_t n_bytes) override;
  void clear(void* dst, size_t n_bytes) override;
  void wait() override;
  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override;
  void run_all(const LaunchList& launches) override;
  uint64_t free_bytes() const override;
  Result<void> status() const override;

 private:
  Result<void> open_in_context(const KernelImages& kernels);
  Result<void> find_kernels();
  void close();
  Error failure(DriverStatus status, const std::string& what) const {
    return driver_failure(driver_, status, label_ + ": " + what);
  }
  DriverStatus launch_one(const char* kernel, const Launch& launch, const void* args);
  Error memory_failure(size_t n_bytes) const;
  bool is_failed() const;
  void keep(Error error);
  // Does call() in the context, unless something failed before, and keeps what fails.
  template <class Call>
  bool attempt(const char* what, const Call& call);

  const DriverFunctions driver_;
  DeviceInfo info_;
  const std::string label_;
  DriverOrdinal device_ = 0;
  DriverHandle context_ = nullptr;
  DriverHandle stream_ = nullptr;
  std::vector<DriverHandle> modules_{};
  LoadedKernels kernels_{driver_};
  LaunchGraphs graphs_{driver_, kernels_};
  Staging staging_{driver_};

  mutable std::mutex mutex_{};
  std::optional<Error> error_{};
};

Result<void> DriverDevice::open(int32_t ordinal, const KernelImages& kernels) {
  DriverStatus status = driver_.device(&device_, ordinal);
  if (status == 0) status = driver_.retain_context(&context_, device_);
  if (status != 0) {
    context_ = nullptr;
    return failure(status, "it cannot be opened");
  }
  const CurrentContext current(driver_, context_);
  if (current.status() != 0) return failure(current.status(), "it cannot be used");
  return open_in_context(kernels);
}

Result<void> DriverDevice::open_in_context(const KernelImages& kernels) {
  size_t free_bytes = 0, all_bytes = 0;
  DriverStatus status = driver_.memory_info(&free_bytes, &all_bytes);
  if (status == 0) status = driver_.create_stream(&stream_, driver::kStreamNonBlocking);
  if (status == 0) status = staging_.open();
  if (status != 0) return failure(status, "it cannot be prepared");
  info_.free_bytes = free_bytes;
  for (const candor_cuda_image& image : kernels.images) {
    DriverHandle module = nullptr;
    status = driver_.load_module(&module, image.begin);
    if (status != 0) return failure(status, fmt::format("the kernels \"{}\" do not load", image.name));
    modules_.push_back(module);
  }
  return find_kernels();
}

Result<void> DriverDevice::find_kernels() {
  const LoadedKernels::Missing missing = kernels_.load(modules_);
  if (missing.status == driver::kNotFound) {
    return fail(ErrorKind::kInternal,
                fmt::format("{}: this program holds no kernel {}: build it again", label_, missing.kernel));
  }
  if (missing.status == 0) return {};
  return failure(missing.status, fmt::format("the kernel {} does not load", missing.kernel));
}

void DriverDevice::close() {
  if (context_ == nullptr) return;
  {
    const CurrentContext current(driver_, context_);
    if (current.status() == 0) {
      if (stream_ != nullptr) driver_.synchronize(stream_);
      graphs_.clear();
      staging_.close();
      for (const DriverHandle module : modules_) driver_.unload_module(module);
      if (stream_ != nullptr) driver_.destroy_stream(stream_);
    }
  }
  driver_.release_context(device_);
}

Error DriverDevice::memory_failure(size_t n_bytes) const {
  size_t free_bytes = 0, all_bytes = 0;
  std::string message = fmt::format("{}: {} of memory are needed", label_, gigabytes(n_bytes));
  if (driver_.memory_info(&free_bytes, &all_bytes) == 0) {
    message += fmt::format(", and {} of {} are free", gigabytes(free_bytes), gigabytes(all_bytes));
  }
  message += ": use a smaller model or context, or end other processes (nvidia-smi)";
  return fail(ErrorKind::kOutOfMemory, message);
}

Result<std::byte*> DriverDevice::allocate(size_t n_bytes) {
  CANDOR_TRY(status());
  DriverAddress memory = 0;
  const CurrentContext current(driver_, context_);
  DriverStatus status = current.status();
  if (status == 0) status = driver_.allocate(&memory, n_bytes);
  if (status == driver::kOutOfMemory) return memory_failure(n_bytes);
  if (status != 0) {
    Error error = failure(status, "memory was asked for");
    keep(error);
    return error;
  }
  CANDOR_CHECK(memory % 256 == 0);
  return reinterpret_cast<std::byte*>(memory);
}

// Also after a failure: the card may have the rest of the memory. The driver need not wait for kernels that use it.
void DriverDevice::release(std::byte* memory) {
  wait();
  const CurrentContext current(driver_, context_);
  if (current.status() == 0) driver_.release(address_of(memory));
}

bool DriverDevice::is_failed() const {
  const std::lock_guard lock(mutex_);
  return error_.has_value();
}

void DriverDevice::keep(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

template <class Call>
bool DriverDevice::attempt(const char* what, const Call& call) {
  if (is_failed()) return false;
  const CurrentContext current(driver_, context_);
  DriverStatus status = current.status();
  if (status == 0) status = call();
  if (status != 0) keep(failure(status, what));
  return status == 0;
}

void DriverDevice::copy_in(void* dst, const void* src, size_t n_bytes) {
  counters_.copied_in_bytes += n_bytes;
  attempt("a copy to it", [&] { return staging_.copy_in(address_of(dst), src, n_bytes, stream_); });
}

void DriverDevice::copy_out(void* dst, const void* src, size_t n_bytes) {
  counters_.copied_out_bytes += n_bytes;
  const bool is_done = attempt("a copy from it", [&] {
    const DriverStatus status = n_bytes == 0 ? 0 : driver_.copy_out(dst, address_of(src), n_bytes, stream_);
    return status == 0 ? driver_.synchronize(stream_) : status;
  });
  if (!is_done && n_bytes > 0) std::memset(dst, 0, n_bytes);
}

void DriverDevice::copy(void* dst, const void* src, size_t n_bytes) {
  if (n_bytes == 0) return;
  attempt("a copy inside it", [&] { return driver_.copy(address_of(dst), address_of(src), n_bytes, stream_); });
}

void DriverDevice::clear(void* dst, size_t n_bytes) {
  if (n_bytes == 0) return;
  attempt("memory was cleared", [&] { return driver_.set_bytes(address_of(dst), 0, n_bytes, stream_); });
}

uint64_t DriverDevice::free_bytes() const {
  size_t free_bytes = 0, all_bytes = 0;
  if (is_failed()) return 0;
  const CurrentContext current(driver_, context_);
  return current.status() == 0 && driver_.memory_info(&free_bytes, &all_bytes) == 0 ? free_bytes : 0;
}

void DriverDevice::wait() {
  attempt("its work", [&] { return driver_.synchronize(stream_); });
}

void DriverDevice::launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) {
  static_cast<void>(n_bytes);  // the driver knows it from the kernel
  if (is_failed()) return;
  const CurrentContext current(driver_, context_);
  DriverStatus status = current.status();
  if (status == 0) status = launch_one(kernel, launch, args);
  if (status != 0) keep(failure(status, words_of(kernel, launch)));
}

DriverStatus DriverDevice::launch_one(const char* kernel, const Launch& launch, const void* args) {
  DriverHandle function = nullptr;
  if (const DriverStatus status = kernels_.prepare(kernel, launch, &function); status != 0) return status;
  void* values[] = {const_cast<void*>(args)};
  ++counters_.launches;
  return driver_.launch(function, launch.x, launch.y, launch.z, launch.n_threads, 1, 1, launch.shared_bytes, stream_,
                        values, nullptr);
}

void DriverDevice::run_all(const LaunchList& launches) {
  if (is_failed()) return;
  const CurrentContext current(driver_, context_);
  LaunchGraphs::Outcome outcome{.status = current.status()};
  if (outcome.status == 0) outcome = graphs_.run(launches, stream_);
  if (outcome.is_launched) {
    ++counters_.graph_launches;
    return;
  }
  for (const LaunchList::Entry& entry : launches.entries()) {
    if (outcome.status != 0) break;
    outcome = {.status = launch_one(entry.kernel, entry.launch, launches.args(entry)), .entry = &entry};
  }
  if (outcome.status == 0) return;
  keep(failure(outcome.status, outcome.entry != nullptr
                                   ? words_of(outcome.entry->kernel, outcome.entry->launch)
                                   : fmt::format("a graph of {} kernels", launches.entries().size())));
}

Result<void> DriverDevice::status() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  return {};
}

}  // namespace

KernelImages embedded_kernels() {
  size_t n = 0;
  while (candor_cuda_images[n].name != nullptr) ++n;
  return {.images = {candor_cuda_images, n}, .version = candor_cuda_version};
}

namespace {

Result<DriverFunctions> driver_for(const KernelImages& kernels) {
  if (!kernels.images.empty()) return load_driver();
  return fail(ErrorKind::kUnsupported, "this program was built without kernels for GPUs: build with -DCANDOR_CUDA=ON");
}

Result<std::unique_ptr<Device>> open_reported(DriverReport report, int32_t ordinal, const DriverFunctions& driver,
                                              const KernelImages& kernels) {
  CANDOR_TRY(check_version(report.version, kernels.version));
  const int32_t n_devices = static_cast<int32_t>(report.devices.size());
  if (ordinal < 0 || ordinal >= n_devices) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("GPU {} does not exist: {} are visible, counted from 0 (see nvidia-smi -L, and "
                            "CUDA_VISIBLE_DEVICES)",
                            ordinal, n_devices));
  }
  DeviceInfo& info = report.devices[static_cast<size_t>(ordinal)];
  if (info.major < kOldestMajor) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("GPU {} ({}) has compute capability {}.{}, and kernels need {}.0 or "
                            "newer: use the CPU",
                            ordinal, info.name, info.major, info.minor, kOldestMajor));
  }
  auto device = std::make_unique<DriverDevice>(ordinal, std::move(info), driver);
  CANDOR_TRY(device->open(ordinal, kernels));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

Result<std::unique_ptr<Device>> open_driver_device(int32_t ordinal) {
  const KernelImages kernels = embedded_kernels();
  CANDOR_ASSIGN(const DriverFunctions driver, driver_for(kernels));
  return open_driver_device(ordinal, driver, kernels);
}

Result<std::unique_ptr<Device>> open_driver_device(int32_t ordinal, const DriverFunctions& driver,
                                                   const KernelImages& kernels) {
  CANDOR_ASSIGN(DriverReport report, report_driver(driver));
  return open_reported(std::move(report), ordinal, driver, kernels);
}

Result<std::unique_ptr<Device>> open_device_of_rank(int32_t rank_here) {
  const KernelImages kernels = embedded_kernels();
  CANDOR_ASSIGN(const DriverFunctions driver, driver_for(kernels));
  return open_device_of_rank(rank_here, driver, kernels);
}

Result<std::unique_ptr<Device>> open_device_of_rank(int32_t rank_here, const DriverFunctions& driver,
                                                    const KernelImages& kernels) {
  CANDOR_ASSIGN(DriverReport report, report_driver(driver));
  const auto n_devices = std::max<int32_t>(1, static_cast<int32_t>(report.devices.size()));
  return open_reported(std::move(report), rank_here % n_devices, driver, kernels);
}

}  // namespace candor::backend::cuda
