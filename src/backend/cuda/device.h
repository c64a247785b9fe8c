#pragma once
// A GPU as this backend uses it: memory, copies, and kernels that are launched by name, all in the order in which they
// are asked for. Implemented over NVIDIA's driver (driver_device.h) and by an emulation on the host
// (emulation/emulated_device.h), which runs the same kernel sources. One thread owns a device, unless a method says
// otherwise.
//
// What fails after memory was allocated, fails later than it was asked for: status() keeps the first error, and what is
// copied out after one is unspecified.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "backend/cuda/launch.h"
#include "backend/cuda/launch_list.h"
#include "base/error.h"

namespace candor::backend::cuda {

struct DeviceInfo {
  std::string name;   // "NVIDIA H100 80GB HBM3", "emulation"
  int32_t major = 0;  // compute capability
  int32_t minor = 0;
  int32_t n_processors = 0;       // streaming multiprocessors
  uint64_t memory_bytes = 0;      // of the card
  uint64_t free_bytes = 0;        // when it was opened
  uint32_t max_shared_bytes = 0;  // of a block of threads
};

// What memory is taken for.
enum class MemoryUse : uint8_t { kWork, kWeights, kKv };

// Totals, and what stands now. Any thread.
struct DeviceCounters {
  std::atomic<uint64_t> copied_in_bytes{0}, copied_out_bytes{0};  // from and to the host
  std::atomic<uint64_t> launches{0}, graph_launches{0};           // of kernels one by one, of lists as one graph
  std::array<std::atomic<uint64_t>, 3> memory_bytes{};            // by MemoryUse, of DeviceMemory
};

class Device : public Launcher {
 public:
  virtual const DeviceInfo& info() const = 0;
  const DeviceCounters& counters() const { return counters_; }
  // Of its memory, now; 0: unknown. Any thread.
  virtual uint64_t free_bytes() const = 0;

  // An address of the device's, aligned to 256 bytes; the host does not read or write there.
  virtual Result<std::byte*> allocate(size_t n_bytes) = 0;
  // Waits for what may use it.
  virtual void release(std::byte* memory) = 0;

  // src may be reused when it returns.
  virtual void copy_in(void* dst, const void* src, size_t n_bytes) = 0;
  // Waits for all that was asked for before.
  virtual void copy_out(void* dst, const void* src, size_t n_bytes) = 0;
  virtual void copy(void* dst, const void* src, size_t n_bytes) = 0;
  virtual void clear(void* dst, size_t n_bytes) = 0;
  virtual void wait() = 0;

  // As one launch() after another. A list whose kernels came before costs less than that.
  virtual void run_all(const LaunchList& launches) {
    for (const LaunchList::Entry& entry : launches.entries()) {
      launch(entry.kernel, entry.launch, launches.args(entry), entry.args_bytes);
    }
  }

  // The first error. Any thread.
  virtual Result<void> status() const = 0;

 protected:
  friend class DeviceMemory;
  DeviceCounters counters_;
};

// Memory of a device, released with its owner. The device outlives it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  static Result<DeviceMemory> make(Device& device, size_t n_bytes, MemoryUse use = MemoryUse::kWork) {
    if (n_bytes == 0) return DeviceMemory{};
    CANDOR_ASSIGN(std::byte * memory, device.allocate(n_bytes));
    return DeviceMemory(device, memory, n_bytes, use);
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : device_(other.device_),
        memory_(std::exchange(other.memory_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        use_(other.use_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(use_, other.use_);
    return *this;
  }
  ~DeviceMemory() {
    if (memory_ == nullptr) return;
    counted() -= size_;
    device_->release(memory_);
  }

  std::byte* data() const { return memory_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(memory_);
  }
  size_t size() const { return size_; }

 private:
  DeviceMemory(Device& device, std::byte* memory, size_t n_bytes, MemoryUse use)
      : device_(&device), memory_(memory), size_(n_bytes), use_(use) {
    counted() += size_;
  }
  std::atomic<uint64_t>& counted() { return device_->counters_.memory_bytes[static_cast<size_t>(use_)]; }

  Device* device_ = nullptr;
  std::byte* memory_ = nullptr;
  size_t size_ = 0;
  MemoryUse use_ = MemoryUse::kWork;
};

}  // namespace candor::backend::cuda
