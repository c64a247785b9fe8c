#pragma once
// A Device on the host: the kernels of kernels/kernel_list.h run as C++ (thread_block.h), one launch after another, and
// finish before launch() returns. Memory is the host's, each allocation by itself, and begins with bytes 0xff. A copy
// that leaves an allocation, an unknown kernel, a launch that no GPU takes and what a kernel does wrong are errors of
// status(). One thread.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backend/cuda/device.h"
#include "backend/cuda/emulation/thread_block.h"
#include "base/error.h"

namespace candor::backend::cuda {

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice();
  ~EmulatedDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Result<std::byte*> allocate(size_t n_bytes) override;
  void release(std::byte* memory) override;
  void copy_in(void* dst, const void* src, size_t n_bytes) override;
  void copy_out(void* dst, const void* src, size_t n_bytes) override;
  void copy(void* dst, const void* src, size_t n_bytes) override;
  void clear(void* dst, size_t n_bytes) override;
  void wait() override {}
  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override;
  uint64_t free_bytes() const override;
  Result<void> status() const override;

  // A kernel that is not in the list.
  template <class Args>
  void launch_function(void (*kernel)(const Args&), const char* name, const Launch& launch, const Args& args) {
    run_threads(name, launch, [kernel, &args] { kernel(args); });
  }

 private:
  void run_threads(const std::string& name, const Launch& launch, const std::function<void()>& body);
  bool may_touch(const char* what, const void* begin, size_t n_bytes);
  bool is_well() const;
  void set_error(Error error);

  DeviceInfo info_;
  std::map<const std::byte*, size_t> memory_;  // begin and size of each allocation
  emulation::ThreadBlock block_;
  mutable std::mutex mutex_;
  std::optional<Error> error_;
};

std::unique_ptr<EmulatedDevice> make_emulated_device();

}  // namespace candor::backend::cuda
