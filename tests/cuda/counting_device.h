#pragma once
// An emulated device that counts what it is asked for.

#include <cstring>
#include <memory>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/emulation/emulated_device.h"
#include "steady/counting_new.h"

namespace candor::testing {

using backend::cuda::Device;
using backend::cuda::DeviceInfo;
using backend::cuda::Launch;
using backend::cuda::LaunchList;

struct Counts {
  int n_allocated = 0, n_on_host = 0, n_lists = 0, n_launches = 0, n_changed = 0, n_lone_launches = 0;
  int n_copies_in = 0, n_copies_out = 0;
  size_t bytes_in = 0, bytes_out = 0;
};

// What is allocated on the host while it lives is not counted.
class Uncounted {
 public:
  explicit Uncounted(Counts& counts) : counts_(counts), n_before_(n_allocations()) {}
  Uncounted(const Uncounted&) = delete;
  Uncounted& operator=(const Uncounted&) = delete;
  ~Uncounted() { counts_.n_on_host -= static_cast<int>(n_allocations() - n_before_); }

 private:
  Counts& counts_;
  int64_t n_before_ = 0;
};

// An emulated device that counts. n_changed: launches that are not what they were in the list of the same part before.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Counts& counts) : counts_(counts) {}

  const DeviceInfo& info() const override { return device_->info(); }
  Result<std::byte*> allocate(size_t n_bytes) override {
    ++counts_.n_allocated;
    return device_->allocate(n_bytes);
  }
  void release(std::byte* memory) override { device_->release(memory); }
  void copy_in(void* dst, const void* src, size_t n_bytes) override {
    ++counts_.n_copies_in;
    counts_.bytes_in += n_bytes;
    const Uncounted device_work(counts_);
    device_->copy_in(dst, src, n_bytes);
  }
  void copy_out(void* dst, const void* src, size_t n_bytes) override {
    ++counts_.n_copies_out;
    counts_.bytes_out += n_bytes;
    device_->copy_out(dst, src, n_bytes);
  }
  void copy(void* dst, const void* src, size_t n_bytes) override { device_->copy(dst, src, n_bytes); }
  void clear(void* dst, size_t n_bytes) override { device_->clear(dst, n_bytes); }
  void wait() override { device_->wait(); }
  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override {
    ++counts_.n_lone_launches;
    device_->launch(kernel, launch, args, n_bytes);
  }
  void run_all(const LaunchList& launches) override {
    const Uncounted device_work(counts_);
    ++counts_.n_lists;
    counts_.n_launches += static_cast<int>(launches.entries().size());
    const auto part = static_cast<size_t>(launches.part());
    if (part >= last_.size()) last_.resize(part + 1);
    counts_.n_changed += count_changed(last_[part], launches);
    last_[part] = launches;
    device_->run_all(launches);
  }
  uint64_t free_bytes() const override { return device_->free_bytes(); }
  Result<void> status() const override { return device_->status(); }

 private:
  static int count_changed(const LaunchList& before, const LaunchList& now) {
    int n = 0;
    for (size_t i = 0; i < now.entries().size(); ++i) {
      const LaunchList::Entry& entry = now.entries()[i];
      const LaunchList::Entry* old = i < before.entries().size() ? &before.entries()[i] : nullptr;
      const bool is_same = old != nullptr && old->kernel == entry.kernel && old->launch == entry.launch &&
                           std::memcmp(before.args(*old), now.args(entry), entry.args_bytes) == 0;
      n += is_same ? 0 : 1;
    }
    return n;
  }

  Counts& counts_;
  std::unique_ptr<Device> device_ = backend::cuda::make_emulated_device();
  std::vector<LaunchList> last_;
};

}  // namespace candor::testing
