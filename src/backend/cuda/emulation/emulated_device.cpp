#include "backend/cuda/emulation/emulated_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/emulation/kernel_table.h"

namespace candor::backend::cuda {

namespace {

constexpr std::align_val_t kAlignment{256};

// What every card of compute capability 8 and later takes.
constexpr uint32_t kMaxSharedBytes = 99 << 10;
constexpr uint32_t kMaxThreads = 1024;
constexpr uint32_t kMaxBlocksX = INT32_MAX;
constexpr uint32_t kMaxBlocksYZ = 65535;

std::optional<std::string> fault_of(const Launch& launch) {
  if (launch.x == 0 || launch.y == 0 || launch.z == 0 || launch.x > kMaxBlocksX || launch.y > kMaxBlocksYZ ||
      launch.z > kMaxBlocksYZ) {
    return fmt::format("blocks are ({}, {}, {}), and must be 1 to ({}, {}, {})", launch.x, launch.y, launch.z,
                       kMaxBlocksX, kMaxBlocksYZ, kMaxBlocksYZ);
  }
  if (launch.n_threads == 0 || launch.n_threads % 32 != 0 || launch.n_threads > kMaxThreads) {
    return fmt::format("a block has {} threads, and must have a multiple of 32 up to {}", launch.n_threads,
                       kMaxThreads);
  }
  if (launch.shared_bytes > kMaxSharedBytes) {
    return fmt::format("a block asks for {} bytes of shared memory, and {} is the most", launch.shared_bytes,
                       kMaxSharedBytes);
  }
  return std::nullopt;
}

}  // namespace

EmulatedDevice::EmulatedDevice() {
  info_.name = "emulation";
  info_.major = 8;
  info_.minor = 6;
  info_.n_processors = 4;
  info_.memory_bytes = uint64_t{16} << 30;
  info_.free_bytes = info_.memory_bytes;
  info_.max_shared_bytes = kMaxSharedBytes;
}

EmulatedDevice::~EmulatedDevice() {
  for (const auto& [begin, size] : memory_) ::operator delete(const_cast<std::byte*>(begin), kAlignment);
}

Result<std::byte*> EmulatedDevice::allocate(size_t n_bytes) {
  auto* memory = static_cast<std::byte*>(::operator new(n_bytes, kAlignment, std::nothrow));
  if (memory == nullptr) {
    return fail(ErrorKind::kOutOfMemory, fmt::format("emulation: no memory for {} bytes", n_bytes));
  }
  std::memset(memory, 0xff, n_bytes);
  memory_.emplace(memory, n_bytes);
  return memory;
}

void EmulatedDevice::release(std::byte* memory) {
  if (memory_.erase(memory) == 1) return ::operator delete(memory, kAlignment);
  set_error(
      fail(ErrorKind::kInternal, fmt::format("emulation: release of {}, which is no allocation", fmt::ptr(memory))));
}

bool EmulatedDevice::may_touch(const char* what, const void* begin, size_t n_bytes) {
  if (!is_well()) return false;
  if (n_bytes == 0) return true;
  const auto* bytes = static_cast<const std::byte*>(begin);
  auto after = memory_.upper_bound(bytes);
  if (after != memory_.begin()) {
    const auto& [start, size] = *--after;
    const auto offset = static_cast<size_t>(bytes - start);
    if (offset <= size && n_bytes <= size - offset) return true;
  }
  set_error(fail(ErrorKind::kInternal,
                 fmt::format("emulation: {} of {} bytes at {}, which are in no allocation", what, n_bytes, begin)));
  return false;
}

// As if nobody else used it.
uint64_t EmulatedDevice::free_bytes() const {
  uint64_t n_taken = 0;
  for (const auto& use : counters_.memory_bytes) n_taken += use;
  return info_.memory_bytes - std::min(info_.memory_bytes, n_taken);
}

void EmulatedDevice::copy_in(void* dst, const void* src, size_t n_bytes) {
  counters_.copied_in_bytes += n_bytes;
  if (may_touch("copy_in", dst, n_bytes) && n_bytes > 0) std::memcpy(dst, src, n_bytes);
}

void EmulatedDevice::copy_out(void* dst, const void* src, size_t n_bytes) {
  counters_.copied_out_bytes += n_bytes;
  if (may_touch("copy_out", src, n_bytes) && n_bytes > 0) std::memcpy(dst, src, n_bytes);
}

void EmulatedDevice::copy(void* dst, const void* src, size_t n_bytes) {
  if (may_touch("copy to", dst, n_bytes) && may_touch("copy from", src, n_bytes) && n_bytes > 0) {
    std::memcpy(dst, src, n_bytes);
  }
}

void EmulatedDevice::clear(void* dst, size_t n_bytes) {
  if (may_touch("clear", dst, n_bytes) && n_bytes > 0) std::memset(dst, 0, n_bytes);
}

void EmulatedDevice::launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) {
  const auto table = emulation::kernel_table();
  const auto entry =
      std::find_if(table.begin(), table.end(), [kernel](const emulation::KernelEntry& e) { return e.name == kernel; });
  if (entry == table.end()) {
    return set_error(fail(ErrorKind::kInternal, fmt::format("emulation: no kernel is named {}", kernel)));
  }
  if (entry->args_bytes != n_bytes) {
    return set_error(fail(ErrorKind::kInternal, fmt::format("emulation: kernel {} takes {} bytes of arguments, not {}",
                                                            kernel, entry->args_bytes, n_bytes)));
  }
  run_threads(kernel, launch, [call = entry->call, args] { call(args); });
}

void EmulatedDevice::run_threads(const std::string& name, const Launch& launch, const std::function<void()>& body) {
  if (!is_well()) return;
  ++counters_.launches;
  if (const auto fault = fault_of(launch)) {
    return set_error(fail(ErrorKind::kInternal, fmt::format("kernel {}: {}", name, *fault)));
  }
  if (auto ran = block_.run(name, launch, body); !ran) set_error(std::move(ran).error());
}

bool EmulatedDevice::is_well() const {
  const std::lock_guard lock(mutex_);
  return !error_;
}

void EmulatedDevice::set_error(Error error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

Result<void> EmulatedDevice::status() const {
  const std::lock_guard lock(mutex_);
  if (error_) return *error_;
  return {};
}

std::unique_ptr<EmulatedDevice> make_emulated_device() {
  return std::make_unique<EmulatedDevice>();
}

}  // namespace candor::backend::cuda
