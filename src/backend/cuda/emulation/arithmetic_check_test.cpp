#include "backend/cuda/arithmetic_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>

#include "backend/cuda/emulation/device_test_support.h"

namespace candor::backend::cuda {
namespace {

TEST(arithmetic_check, a_device_computes_as_the_host_does) {
  const auto device = make_test_device();
  const auto report = check_arithmetic(*device, is_card(*device) ? 4000000 : 20000);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->n_operations, 3000000);
  EXPECT_EQ(report->n_wrong, 0) << report->n_wrong_at_border
                                << " at the border of denormals; the first: " << report->first;
}

// A device whose copies out have some number changed.
class ChangedDevice final : public Device {
 public:
  ChangedDevice(size_t place, uint32_t bits) : place_(place), bits_(bits) {}
  const DeviceInfo& info() const override { return device_->info(); }
  Result<std::byte*> allocate(size_t n_bytes) override { return device_->allocate(n_bytes); }
  void release(std::byte* memory) override { device_->release(memory); }
  void copy_in(void* dst, const void* src, size_t n_bytes) override { device_->copy_in(dst, src, n_bytes); }
  void copy_out(void* dst, const void* src, size_t n_bytes) override {
    device_->copy_out(dst, src, n_bytes);
    std::memcpy(static_cast<std::byte*>(dst) + place_ * 4, &bits_, 4);
  }
  void copy(void* dst, const void* src, size_t n_bytes) override { device_->copy(dst, src, n_bytes); }
  void clear(void* dst, size_t n_bytes) override { device_->clear(dst, n_bytes); }
  void wait() override { device_->wait(); }
  void launch(const char* kernel, const Launch& launch, const void* args, size_t n_bytes) override {
    device_->launch(kernel, launch, args, n_bytes);
  }
  uint64_t free_bytes() const override { return device_->free_bytes(); }
  Result<void> status() const override { return device_->status(); }

 private:
  std::unique_ptr<Device> device_ = make_emulated_device();
  size_t place_;
  uint32_t bits_;
};

TEST(arithmetic_check, one_wrong_number_is_named) {
  ChangedDevice device(0, 0x3f800000u);
  const auto report = check_arithmetic(device, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->n_wrong, 1);
  EXPECT_EQ(report->n_wrong_at_border, 0);
  EXPECT_EQ(report->first, "fma(0x00000000, 0x00000000, 0x00000000) is 0x3f800000, and 0x00000000 on the host");
}

TEST(arithmetic_check, the_smallest_normal_number_in_place_of_zero_is_counted_apart) {
  ChangedDevice device(0, 0x00800000u);
  const auto report = check_arithmetic(device, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->n_wrong, 1);
  EXPECT_EQ(report->n_wrong_at_border, 1);
}

}  // namespace
}  // namespace candor::backend::cuda
