#include "backend/cuda/driver_device.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/driver_test_support.h"
#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

constexpr unsigned char kBytes[16] = {};
constexpr candor_cuda_image kImages[] = {{"rows", kBytes, kBytes + 16}, {"products", kBytes, kBytes + 16}};

Result<std::unique_ptr<Device>> open_fake(const FakeDriver& fake, int32_t ordinal = 0) {
  return open_driver_device(ordinal, fake.functions(), {.images = kImages, .version = 13050});
}

std::string message_of(const FakeDriver& fake, int32_t ordinal = 0) {
  const auto refused = open_fake(fake, ordinal);
  return refused ? "it was opened" : refused.error().message;
}

TEST(driver, without_one_the_error_says_so) {
  const auto refused = load_driver("libcandor_no_such_driver.so.1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kUnsupported);
  EXPECT_NE(refused.error().message.find("no driver of NVIDIA is installed (libcandor_no_such_driver.so.1"),
            std::string::npos)
      << refused.error().message;
}

TEST(driver, a_library_without_a_function_is_too_old) {
  const auto refused = load_driver("libm.so.6");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the driver of NVIDIA is too old: libm.so.6 lacks cuInit, install one for CUDA 13 (580 or newer)");
}

TEST(driver, a_report_names_the_cards_and_opens_none) {
  FakeDriver fake;
  fake.n_devices = 2;
  const auto report = report_driver(fake.functions());
  ASSERT_TRUE(report);
  EXPECT_EQ(version_text(report->version), "13.5");
  ASSERT_EQ(report->devices.size(), 2u);
  EXPECT_EQ(report->devices[1].name, "Fake 100");
  EXPECT_EQ(report->devices[1].major, 9);
  EXPECT_EQ(report->devices[1].n_processors, 132);
  EXPECT_EQ(report->devices[1].max_shared_bytes, 232448u);
  EXPECT_EQ(report->devices[1].memory_bytes, uint64_t{80} << 30);
  EXPECT_EQ(fake.n_live, 0);
}

TEST(driver_device, an_old_driver_is_refused_with_both_versions) {
  FakeDriver fake;
  fake.version = 12040;
  EXPECT_EQ(
      message_of(fake),
      "the driver of NVIDIA is too old: it runs CUDA up to 12.4, and the kernels of this program need 13.0; install a "
      "newer one (580 or newer)");
  fake.version = 13000;
  EXPECT_TRUE(open_fake(fake));
}

TEST(driver_device, a_missing_card_is_refused) {
  FakeDriver fake;
  EXPECT_EQ(message_of(fake, 1),
            "GPU 1 does not exist: 1 are visible, counted from 0 (see nvidia-smi -L, and CUDA_VISIBLE_DEVICES)");
  EXPECT_NE(message_of(fake, -1).find("GPU -1 does not exist"), std::string::npos);
  fake.n_devices = 0;
  EXPECT_EQ(
      message_of(fake),
      "the driver of NVIDIA does not start: CUDA_ERROR_NO_DEVICE (words): no NVIDIA GPU is visible: see nvidia-smi "
      "-L, and CUDA_VISIBLE_DEVICES");
}

TEST(driver_device, ranks_of_a_host_take_its_cards_in_turn) {
  FakeDriver fake;
  fake.n_devices = 2;
  for (int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(open_device_of_rank(rank, fake.functions(), {.images = kImages, .version = 13050}));
  }
  EXPECT_EQ(fake.opened, (std::vector<int32_t>{0, 1, 0, 1}));
  fake.n_devices = 0;
  EXPECT_FALSE(open_device_of_rank(1, fake.functions(), {.images = kImages, .version = 13050}));
}

TEST(driver_device, what_crosses_and_what_is_taken_is_counted) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  const DeviceCounters& counters = (*device)->counters();
  const std::vector<std::byte> bytes(96);
  {
    const auto weights = DeviceMemory::make(**device, 4096, MemoryUse::kWeights);
    const auto work = DeviceMemory::make(**device, 128);
    ASSERT_TRUE(weights && work);
    (*device)->copy_in(weights->data(), bytes.data(), 96);
    std::vector<std::byte> out(32);
    (*device)->copy_out(out.data(), weights->data(), 32);
    EXPECT_EQ(counters.memory_bytes[static_cast<size_t>(MemoryUse::kWeights)], 4096u);
    EXPECT_EQ(counters.memory_bytes[static_cast<size_t>(MemoryUse::kWork)], 128u);
  }
  for (const auto& use : counters.memory_bytes) EXPECT_EQ(use, 0u);
  EXPECT_EQ(counters.copied_in_bytes, 96u);
  EXPECT_EQ(counters.copied_out_bytes, 32u);
  EXPECT_EQ((*device)->free_bytes(), fake.free_bytes);
}

TEST(driver_device, an_old_card_is_refused) {
  FakeDriver fake;
  fake.major = 7;
  EXPECT_EQ(message_of(fake),
            "GPU 0 (Fake 100) has compute capability 7.0, and kernels need 8.0 or newer: use the CPU");
}

TEST(driver_device, a_failure_at_any_call_while_opening_is_an_error_and_leaves_nothing) {
  std::map<std::string, int32_t> calls;
  {
    FakeDriver fake;
    const auto device = open_fake(fake);
    ASSERT_TRUE(device);
    calls = fake.n_calls;
    calls.erase("cuCtxPopCurrent_v2");  // nothing can be done then
  }
  ASSERT_GE(calls.size(), 15u);
  for (const auto& [symbol, n] : calls) {
    for (int32_t i = 0; i < n; ++i) {
      FakeDriver fake;
      fake.failures[symbol] = {.status = 999, .n_good = i};
      const auto refused = open_fake(fake);
      ASSERT_FALSE(refused) << symbol << " " << i;
      EXPECT_NE(refused.error().message.find("CUDA_ERROR_UNKNOWN (words)"), std::string::npos)
          << refused.error().message;
      EXPECT_FALSE(fake.was_outside) << symbol;
      EXPECT_EQ(fake.depth, 0) << symbol;
      EXPECT_EQ(fake.n_live, 0) << symbol << " " << i;
    }
  }
}

TEST(driver_device, a_kernel_that_no_image_holds_is_named) {
  FakeDriver fake;
  fake.missing_kernels = {kernel::add_scaled.name};
  EXPECT_EQ(message_of(fake), "GPU 0 (Fake 100): this program holds no kernel add_scaled: build it again");
}

TEST(driver_device, images_that_a_card_does_not_run_are_named) {
  FakeDriver fake;
  fake.failures["cuModuleLoadData"] = {.status = 222, .n_good = 1};
  EXPECT_EQ(message_of(fake),
            "GPU 0 (Fake 100): the kernels \"products\" do not load: CUDA_ERROR_UNSUPPORTED_PTX_VERSION (words): the "
            "driver is too old to compile kernels for this card: install a newer one");
}

TEST(driver_device, memory_that_is_used_up_is_an_error_with_figures_and_no_end) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->info().free_bytes, uint64_t{70} << 30);
  fake.failures["cuMemAlloc_v2"] = {.status = 2};
  fake.free_bytes = 1500000000;
  const auto refused = (*device)->allocate(size_t{2} << 30);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kOutOfMemory);
  EXPECT_EQ(refused.error().message,
            "GPU 0 (Fake 100): 2.15 GB of memory are needed, and 1.50 GB of 85.90 GB are free: use a smaller model or "
            "context, or end other processes (nvidia-smi)");
  EXPECT_TRUE((*device)->status());
  fake.failures.clear();
  EXPECT_TRUE(DeviceMemory::make(**device, 100));
}

TEST(driver_device, bytes_come_back_as_they_went_in) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  for (const size_t n : {size_t{1}, size_t{1000}, size_t{4} << 20, (size_t{21} << 20) + 5}) {
    const auto memory = DeviceMemory::make(**device, 2 * n);
    ASSERT_TRUE(memory);
    std::vector<uint8_t> in(n), out(2 * n, 1);
    std::iota(in.begin(), in.end(), static_cast<uint8_t>(n));
    (*device)->clear(memory->data(), 2 * n);
    (*device)->copy_in(memory->data(), in.data(), n);
    (*device)->copy(memory->data() + n, memory->data(), n / 2);
    (*device)->copy_out(out.data(), memory->data(), 2 * n);
    std::vector<uint8_t> expected = in;
    expected.insert(expected.end(), in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n / 2));
    expected.resize(2 * n);
    EXPECT_EQ(out, expected) << n;
  }
  EXPECT_TRUE((*device)->status());
  EXPECT_GE(fake.n_calls["cuEventSynchronize"], 2);  // parts of the staging memory were used again
}

TEST(driver_device, copies_of_nothing_ask_nothing) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  (*device)->copy_in(nullptr, nullptr, 0);
  (*device)->copy_out(nullptr, nullptr, 0);
  (*device)->copy(nullptr, nullptr, 0);
  (*device)->clear(nullptr, 0);
  EXPECT_EQ(fake.n_calls["cuMemcpyHtoDAsync_v2"] + fake.n_calls["cuMemcpyDtoHAsync_v2"] +
                fake.n_calls["cuMemcpyDtoDAsync_v2"] + fake.n_calls["cuMemsetD8Async"],
            0);
}

TEST(driver_device, kernels_are_launched_by_name_and_ask_for_large_shared_memory_once) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  const AddScaledArgs args{.scale = 0.5f};
  for (const uint32_t shared : {0u, 48u * 1024, 100u * 1024, 100u * 1024, 64u * 1024}) {
    (*device)->run(kernel::add_scaled, {.x = 7, .n_threads = 256, .shared_bytes = shared}, args);
  }
  ASSERT_EQ(fake.launched.size(), 5u);
  EXPECT_EQ(fake.launched[2].kernel, "add_scaled");
  EXPECT_EQ(fake.launched[2].x, 7u);
  EXPECT_EQ(fake.launched[2].n_threads, 256u);
  EXPECT_EQ(fake.launched[2].scale, 0.5f);
  ASSERT_EQ(fake.attributes.size(), 1u);
  EXPECT_EQ(fake.attributes[0].second, 100 * 1024);
}

TEST(driver_device, a_card_that_is_lost_in_mid_step_keeps_the_first_error) {
  FakeDriver fake;
  {
    const auto device = open_fake(fake);
    ASSERT_TRUE(device);
    const auto memory = DeviceMemory::make(**device, 64);
    ASSERT_TRUE(memory);
    fake.failures["cuLaunchKernel"] = {.status = 700, .n_good = 1, .stays_lost = true};
    const AddScaledArgs args{};
    (*device)->run(kernel::add_scaled, {.x = 3, .n_threads = 64}, args);
    EXPECT_TRUE((*device)->status());
    (*device)->run(kernel::add_scaled, {.x = 3, .n_threads = 64}, args);
    (*device)->run(kernel::add_scaled, {.x = 4, .n_threads = 64}, args);
    std::vector<uint8_t> out(64, 7);
    (*device)->copy_out(out.data(), memory->data(), out.size());
    (*device)->wait();
    EXPECT_EQ(out, std::vector<uint8_t>(64, 0));
    EXPECT_EQ(fake.n_calls["cuLaunchKernel"], 2);  // nothing is asked of a lost card
    Result<void> status;
    std::thread([&] { status = (*device)->status(); }).join();
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().kind, ErrorKind::kInternal);
    EXPECT_EQ(status.error().message.find("GPU 0 (Fake 100): the kernel add_scaled (3 x 1 x 1 blocks of 64 threads, 0 "
                                          "bytes shared): CUDA_ERROR_ILLEGAL_ADDRESS (words): a kernel failed"),
              0u)
        << status.error().message;
    EXPECT_FALSE((*device)->allocate(64));
  }
  EXPECT_EQ(fake.depth, 0);
}

TEST(driver_device, an_error_that_comes_later_than_its_kernel_is_kept_as_well) {
  FakeDriver fake;
  const auto device = open_fake(fake);
  ASSERT_TRUE(device);
  fake.failures["cuStreamSynchronize"] = {.status = 719};
  (*device)->wait();
  const auto status = (*device)->status();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message.find("GPU 0 (Fake 100): its work: error 719 (words): a kernel failed"), 0u);
}

TEST(driver_device, every_call_leaves_the_thread_s_context_as_it_was) {
  FakeDriver fake;
  {
    const auto device = open_fake(fake);
    ASSERT_TRUE(device);
    const auto memory = DeviceMemory::make(**device, 64);
    ASSERT_TRUE(memory);
    float value = 1;
    (*device)->copy_in(memory->data(), &value, 4);
    (*device)->run(kernel::add_scaled, {.x = 1, .n_threads = 32}, AddScaledArgs{});
    (*device)->copy_out(&value, memory->data(), 4);
    EXPECT_EQ(fake.depth, 0);
  }
  EXPECT_EQ(fake.depth, 0);
  EXPECT_FALSE(fake.was_outside);
  EXPECT_EQ(fake.n_live, 0);
}

}  // namespace
}  // namespace candor::backend::cuda
