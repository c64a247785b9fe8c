#include "backend/cuda/device_limits.h"

#include <gtest/gtest.h>

#include "backend/cuda/emulation/device_test_support.h"

namespace candor::backend::cuda {
namespace {

TEST(device_limits, every_figure_is_measured) {
  const auto device = make_test_device();
  const DeviceLimits limits = measure_device_limits(*device);
  EXPECT_GT(limits.read_bytes, 1e6);
  EXPECT_GT(limits.int8_ops, 1e6);
  EXPECT_GT(limits.f32_flops, 1e6);
  const auto status = device->status();
  EXPECT_TRUE(status) << status.error().message;
}

}  // namespace
}  // namespace candor::backend::cuda
