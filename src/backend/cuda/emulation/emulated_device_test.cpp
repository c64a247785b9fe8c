#include "backend/cuda/emulation/emulated_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "backend/cuda/emulation/language_host.h"
#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

class EmulatedDeviceTest : public testing::Test {
 protected:
  template <class T>
  T* upload(const std::vector<T>& values) {
    T* memory = allocate<T>(values.size());
    device_->copy_in(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  template <class T>
  T* allocate(size_t n) {
    memory_.push_back(DeviceMemory::make(*device_, n * sizeof(T)).value());
    return memory_.back().as<T>();
  }
  template <class T>
  std::vector<T> download(const T* memory, size_t n) {
    std::vector<T> values(n);
    device_->copy_out(values.data(), memory, n * sizeof(T));
    return values;
  }
  std::string error() const {
    const auto status = device_->status();
    return status ? "" : status.error().message;
  }

  std::unique_ptr<EmulatedDevice> device_ = make_emulated_device();
  std::vector<DeviceMemory> memory_;
};

std::vector<float> random_floats(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(static_cast<int32_t>(random())) * 0x1p-20f;
  return values;
}

TEST_F(EmulatedDeviceTest, AKernelOfTheListGivesWhatALoopGives) {
  const size_t n = 1000;
  std::vector<float> dst = random_floats(n, 1);
  const std::vector<float> src = random_floats(n, 2);
  float* on_device = upload(dst);
  device_->run(kernel::add_scaled, {.x = 8, .n_threads = 128}, {on_device, upload(src), 0.3f, static_cast<int64_t>(n)});
  ASSERT_EQ(error(), "");
  for (size_t i = 0; i < n; ++i) dst[i] = std::fma(src[i], 0.3f, dst[i]);
  EXPECT_EQ(download(on_device, n), dst);
}

struct SumArgs {
  const int32_t* src;
  int32_t* dst;
};

CANDOR_KERNEL(sum_block, SumArgs) {
  Shared<int32_t> sums = shared<int32_t>(0);
  const uint32_t n = n_threads();
  sums[thread()] = args.src[block_x() * n + thread()];
  sync_block();
  for (uint32_t half = n / 2; half > 0; half /= 2) {
    if (thread() < half) sums[thread()] += sums[thread() + half];
    sync_block();
  }
  if (thread() == 0) args.dst[block_x()] = sums[0];
}

TEST_F(EmulatedDeviceTest, ABlockSumsOverSharedMemoryAndBarriers) {
  std::vector<int32_t> src(3 * 256);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<int32_t>(i * i);
  const SumArgs args{upload(src), allocate<int32_t>(3)};
  device_->launch_function(sum_block, "sum_block", {.x = 3, .n_threads = 256, .shared_bytes = 1024}, args);
  ASSERT_EQ(error(), "");
  std::vector<int32_t> expected(3);
  for (size_t i = 0; i < src.size(); ++i) expected[i / 256] += src[i];
  EXPECT_EQ(download(args.dst, 3), expected);
}

CANDOR_KERNEL(sum_warp, SumArgs) {
  int32_t sum = args.src[thread()];
  for (uint32_t mask = 16; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
  const uint32_t odd = ballot(args.src[thread()] % 2 != 0);
  const int32_t next = shuffle(args.src[thread()], lane() + 1);
  args.dst[thread()] = sum + next;
  if (lane() == 0) args.dst[n_threads() + warp()] = static_cast<int32_t>(odd);
}

TEST_F(EmulatedDeviceTest, LanesShuffleAndVote) {
  std::vector<int32_t> src(64);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<int32_t>(i * i * 7 + i / 3);
  const SumArgs args{upload(src), allocate<int32_t>(66)};
  device_->launch_function(sum_warp, "sum_warp", {.n_threads = 64}, args);
  ASSERT_EQ(error(), "");
  std::vector<int32_t> expected(66);
  for (size_t i = 0; i < 64; ++i) {
    const size_t begin = i / 32 * 32;
    for (size_t j = begin; j < begin + 32; ++j) expected[i] += src[j];
    expected[i] += src[begin + (i + 1) % 32];
    if (src[i] % 2 != 0) expected[64 + i / 32] |= static_cast<int32_t>(1u << i % 32);
  }
  EXPECT_EQ(download(args.dst, 66), expected);
}

}  // namespace
}  // namespace candor::backend::cuda
