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

struct MmaArgs {
  const int8_t* a;  // [16, 32]
  const int8_t* b;  // [8, 32], by columns
  int32_t* d;       // [16, 8]
};

uint32_t load4(const int8_t* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, 4);
  return word;
}

template <bool kSwapped>
CANDOR_KERNEL(multiply, MmaArgs) {
  const uint32_t group = lane() / 4;
  const uint32_t k = lane() % 4 * 4;
  const int8_t* upper = args.a + group * 32 + k;
  const int8_t* lower = upper + 8 * 32;
  const int8_t* column = args.b + group * 32 + k;
  const uint32_t a[4] = {load4(upper), load4(kSwapped ? upper + 16 : lower), load4(kSwapped ? lower : upper + 16),
                         load4(lower + 16)};
  const uint32_t b[2] = {load4(column), load4(column + 16)};
  int32_t* place = args.d + group * 8 + lane() % 4 * 2;
  int32_t d[4] = {place[0], place[1], place[64], place[65]};
  mma_s8(d, a, b);
  for (uint32_t i = 0; i < 4; ++i) place[i / 2 * 64 + i % 2] = d[i];
}

class ProductTest : public EmulatedDeviceTest {
 protected:
  static std::vector<int32_t> multiply_plainly(const std::vector<int8_t>& a, const std::vector<int8_t>& b,
                                               std::vector<int32_t> d) {
    for (size_t i = 0; i < d.size(); ++i) {
      auto sum = static_cast<uint32_t>(d[i]);
      for (size_t k = 0; k < 32; ++k) sum += static_cast<uint32_t>(a[i / 8 * 32 + k] * b[i % 8 * 32 + k]);
      d[i] = static_cast<int32_t>(sum);
    }
    return d;
  }
  std::vector<int32_t> multiply_on_device(void (*kernel)(const MmaArgs&), const std::vector<int8_t>& a,
                                          const std::vector<int8_t>& b, const std::vector<int32_t>& d) {
    const MmaArgs args{upload(a), upload(b), upload(d)};
    device_->launch_function(kernel, "multiply", {.n_threads = 32}, args);
    EXPECT_EQ(error(), "");
    return download(args.d, d.size());
  }
  std::vector<int8_t> random_bytes(size_t n) {
    std::vector<int8_t> bytes(n);
    for (int8_t& byte : bytes) byte = static_cast<int8_t>(random_());
    return bytes;
  }

  std::mt19937 random_{3};
};

TEST_F(ProductTest, AMatrixProductIsThatOfItsIntegers) {
  for (int round = 0; round < 20; ++round) {
    const auto a = random_bytes(16 * 32);
    const auto b = random_bytes(8 * 32);
    std::vector<int32_t> d(128);
    for (int32_t& value : d) value = static_cast<int32_t>(random_());  // sums wrap
    EXPECT_EQ(multiply_on_device(multiply<false>, a, b, d), multiply_plainly(a, b, d));
  }
  const std::vector<int8_t> a(16 * 32, -128), b(8 * 32, -128);
  EXPECT_EQ(multiply_on_device(multiply<false>, a, b, std::vector<int32_t>(128)), std::vector<int32_t>(128, 32 << 14));
}

TEST_F(ProductTest, ASwappedFragmentGivesOtherNumbers) {
  const auto a = random_bytes(16 * 32);
  const auto b = random_bytes(8 * 32);
  const std::vector<int32_t> d(128);
  EXPECT_NE(multiply_on_device(multiply<true>, a, b, d), multiply_plainly(a, b, d));
}

struct NumberArgs {
  const float* src;
  float* dst;
};

CANDOR_KERNEL(compute_words, NumberArgs) {
  const float x = args.src[thread()];
  float* out = args.dst + thread() * 8;
  out[0] = fma_rn(x, x, -1.0f);
  out[1] = div_rn(1.0f, x);
  out[2] = sqrt_rn(x);
  out[3] = to_float_rn(to_int_rn(x));
  out[4] = half_to_float(float_to_half(x));
  out[5] = bf16_to_float(float_to_bf16(x));
  out[6] = mul_rn(mul_rn(x, 0x1p-10f), 0x1p10f);
  out[7] = to_float_rn(dot4(bits_of(x), 0x80ff7f01u, 5));
}

TEST_F(EmulatedDeviceTest, WordsOfNumbersFlushDenormalsAndSaturate) {
  std::vector<float> src(32, 1.5f);
  src[1] = 0x1p-120f;
  src[2] = 1e20f;
  src[3] = -1e20f;
  src[4] = NAN;
  src[5] = 2.5f;
  const NumberArgs args{upload(src), allocate<float>(32 * 8)};
  device_->launch_function(compute_words, "compute_words", {.n_threads = 32}, args);
  ASSERT_EQ(error(), "");
  const std::vector<float> out = download(args.dst, 32 * 8);
  EXPECT_EQ(out[0], 1.25f);
  EXPECT_EQ(out[3], 2.0f);
  EXPECT_EQ(out[7], -7995.0f);  // bytes 0, 0, -64, 63 by 1, 127, -1, -128, and 5
  EXPECT_EQ(out[8 + 6], 0.0f);
  EXPECT_EQ(out[16 + 3], 2147483648.0f);
  EXPECT_EQ(out[24 + 3], -2147483648.0f);
  EXPECT_EQ(out[32 + 3], 0.0f);
  EXPECT_EQ(out[40 + 3], 2.0f);
}

struct CopyArgs {
  const uint32_t* src;  // [n_stages, 4 n_threads]
  uint32_t* dst;        // as src
  uint32_t n_stages;
};

// Two stages ahead, read by another lane.
template <int kLeft>
CANDOR_KERNEL(stream_rows, CopyArgs) {
  const uint32_t row = 4 * n_threads();
  Shared<uint32_t> stages = shared<uint32_t>(0);
  const auto fetch = [&](uint32_t stage) {
    if (stage < args.n_stages) {
      copy_async16(stages, stage % 3 * row + 4 * thread(), args.src + stage * row + 4 * thread());
    }
    commit_async();
  };
  fetch(0);
  fetch(1);
  for (uint32_t stage = 0; stage < args.n_stages; ++stage) {
    fetch(stage + 2);
    wait_async<kLeft>();
    sync_block();
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t at = i * n_threads() + thread();
      args.dst[stage * row + at] = stages[stage % 3 * row + at];
    }
    sync_block();
  }
  wait_async<0>();
}

TEST_F(EmulatedDeviceTest, AsynchronousCopiesArriveGroupByGroup) {
  std::vector<uint32_t> src(5 * 4 * 64);
  for (size_t i = 0; i < src.size(); ++i) src[i] = static_cast<uint32_t>(i * 2654435761u);
  const CopyArgs args{upload(src), allocate<uint32_t>(src.size()), 5};
  device_->launch_function(stream_rows<2>, "stream_rows", {.n_threads = 64, .shared_bytes = 3 * 1024}, args);
  ASSERT_EQ(error(), "");
  EXPECT_EQ(download(args.dst, src.size()), src);
}

// Faults.

class FaultTest : public EmulatedDeviceTest {
 protected:
  template <class Args>
  std::string error_of(void (*kernel)(const Args&), const Launch& launch, const Args& args) {
    device_->launch_function(kernel, "broken", launch, args);
    return error();
  }
};

struct NoArgs {
  uint32_t n = 0;
};

TEST_F(FaultTest, AMissingWaitIsSeen) {
  const CopyArgs args{upload(std::vector<uint32_t>(3 * 256)), allocate<uint32_t>(3 * 256), 3};
  EXPECT_EQ(
      error_of(stream_rows<3>, {.n_threads = 64, .shared_bytes = 3 * 1024}, args),
      "kernel broken, block (0, 0, 0): thread 63 reads bytes 252 to 256 of shared memory, which thread 15 copies to "
      "with no wait_async between");
}

CANDOR_KERNEL(leave_copies, CopyArgs) {
  copy_async16(shared<uint32_t>(0), thread() * 4, args.src + thread() * 4);
  wait_async<0>();  // of no group
}

TEST_F(FaultTest, ACopyThatNobodyCommittedIsSeen) {
  const CopyArgs args{upload(std::vector<uint32_t>(128)), nullptr, 0};
  EXPECT_EQ(error_of(leave_copies, {.n_threads = 32, .shared_bytes = 512}, args),
            "kernel broken, block (0, 0, 0): thread 0 ends before its asynchronous copies arrived (wait_async<0>)");
}

CANDOR_KERNEL(copy_from_odd_place, CopyArgs) {
  copy_async16(shared<uint32_t>(0), thread() * 4, args.src + thread() + 1);
}

TEST_F(FaultTest, ACopyFromAnUnalignedPlaceIsSeen) {
  const CopyArgs args{upload(std::vector<uint32_t>(128)), nullptr, 0};
  EXPECT_NE(error_of(copy_from_odd_place, {.n_threads = 32, .shared_bytes = 512}, args).find("not aligned to 16"),
            std::string::npos);
}

CANDOR_KERNEL(forget_barrier, NoArgs) {
  Shared<uint32_t> values = shared<uint32_t>(16);
  values[thread()] = thread();
  if (thread() < 32) sync_warp();
  if (thread() == 40) values[thread()] = values[3];
}

TEST_F(FaultTest, AMissingBarrierIsSeen) {
  EXPECT_EQ(
      error_of(forget_barrier, {.x = 2, .n_threads = 64, .shared_bytes = 1024}, NoArgs{}),
      "kernel broken, block (0, 0, 0): thread 40 reads bytes 28 to 32 of shared memory, which thread 3 wrote with no "
      "barrier between");
}

CANDOR_KERNEL(overwrite_read, NoArgs) {
  Shared<uint32_t> values = shared<uint32_t>(0);
  if (thread() == 0) values[0] = 1;
  sync_block();
  if (values[0] == 1 && thread() == 33) values[0] = 2;
}

TEST_F(FaultTest, AWriteOverWhatOthersReadIsSeen) {
  EXPECT_EQ(
      error_of(overwrite_read, {.n_threads = 64, .shared_bytes = 16}, NoArgs{}),
      "kernel broken, block (0, 0, 0): thread 33 writes bytes 0 to 4 of shared memory, which thread 0 read with no "
      "barrier between");
}

// Lane 1 reads what lane 0 wrote.
template <bool kIsSynced>
CANDOR_KERNEL(pass_to_next_lane, NoArgs) {
  Shared<uint16_t> values = shared<uint16_t>(0);
  values[thread()] = static_cast<uint16_t>(thread());
  kIsSynced ? sync_warp() : static_cast<void>(shuffle(1u, 0));
  const uint16_t value = values[thread() / 32 * 32 + (lane() + 1) % 32];
  sync_warp();
  values[thread()] = value;
}

TEST_F(FaultTest, AShuffleOrdersNoMemoryOfAWarpAndSyncWarpDoes) {
  const Launch launch{.n_threads = 64, .shared_bytes = 128};
  EXPECT_EQ(error_of(pass_to_next_lane<true>, launch, NoArgs{}), "");
  EXPECT_EQ(
      error_of(pass_to_next_lane<false>, launch, NoArgs{}),
      "kernel broken, block (0, 0, 0): thread 31 reads bytes 0 to 2 of shared memory, which thread 0 wrote with no "
      "barrier between");
}

CANDOR_KERNEL(diverge_at_barrier, NoArgs) {
  if (thread() < 60) sync_block();
}

TEST_F(FaultTest, ADivergentBarrierIsSeen) {
  EXPECT_EQ(error_of(diverge_at_barrier, {.y = 2, .n_threads = 64}, NoArgs{}),
            "kernel broken, block (0, 0, 0): its threads wait for one another: 4 ended (first: thread 60), 60 wait at "
            "sync_block (first: thread 0)");
}

CANDOR_KERNEL(leave_lanes_out, NoArgs) {
  if (lane() < 16) shuffle_xor(lane(), 1);
}

TEST_F(FaultTest, AShuffleThatSomeLanesMissIsSeen) {
  EXPECT_EQ(error_of(leave_lanes_out, {.n_threads = 32}, NoArgs{}),
            "kernel broken, block (0, 0, 0): its threads wait for one another: 16 ended (first: thread 16), 16 wait at "
            "shuffle (first: thread 0)");
}

CANDOR_KERNEL(mix_meetings, NoArgs) {
  if (lane() < 16) {
    ballot(true);
  } else {
    sync_warp();
  }
}

TEST_F(FaultTest, LanesThatMeetAtDifferentWordsAreSeen) {
  EXPECT_EQ(error_of(mix_meetings, {.n_threads = 32}, NoArgs{}),
            "kernel broken, block (0, 0, 0): thread 31 waits at sync_warp, and thread 0 of its warp at ballot");
}

CANDOR_KERNEL(write_beyond, NoArgs) {
  shared<float>(0)[thread()] = 1.0f;
}

TEST_F(FaultTest, AWriteOutOfSharedMemoryIsSeen) {
  EXPECT_EQ(error_of(write_beyond, {.n_threads = 64, .shared_bytes = 160}, NoArgs{}),
            "kernel broken, block (0, 0, 0): thread 40 accesses bytes 160 to 164 of shared memory, which has 160");
}

CANDOR_KERNEL(read_unaligned, NoArgs) {
  const float value = shared<float>(2)[thread()];
  if (value > 0) shared<float>(0)[thread()] = value;
}

TEST_F(FaultTest, AnUnalignedAccessOfSharedMemoryIsSeen) {
  EXPECT_EQ(
      error_of(read_unaligned, {.n_threads = 32, .shared_bytes = 160}, NoArgs{}),
      "kernel broken, block (0, 0, 0): thread 0 accesses bytes 2 to 6 of shared memory, which are not aligned to 4");
}

CANDOR_KERNEL(check_pattern, SumArgs) {
  args.dst[block_x() * n_threads() + thread()] = shared<int32_t>(0)[thread()];
  sync_block();
  shared<int32_t>(0)[thread()] = 7;
}

TEST_F(EmulatedDeviceTest, MemoryBeginsWithoutPlausibleNumbers) {
  const SumArgs args{nullptr, allocate<int32_t>(64)};
  EXPECT_EQ(download(args.dst, 64), std::vector<int32_t>(64, -1));
  device_->clear(args.dst, 256);
  device_->launch_function(check_pattern, "check_pattern", {.x = 2, .n_threads = 32, .shared_bytes = 128}, args);
  ASSERT_EQ(error(), "");
  EXPECT_EQ(download(args.dst, 64), std::vector<int32_t>(64, -1));
}

TEST_F(FaultTest, UnknownKernelsAndArgumentsAreErrors) {
  const NoArgs args;
  device_->launch("add_nothing", {.n_threads = 32}, &args, sizeof(args));
  EXPECT_EQ(error(), "emulation: no kernel is named add_nothing");
}

TEST_F(FaultTest, TheFirstErrorStaysAndStopsLaunches) {
  float* values = upload(std::vector<float>(32, 1.0f));
  device_->launch("add_scaled", {.n_threads = 32}, values, 4);
  const std::string first = error();
  EXPECT_EQ(first, "emulation: kernel add_scaled takes 32 bytes of arguments, not 4");
  device_->run(kernel::add_scaled, {.n_threads = 32}, {values, values, 1.0f, 32});
  EXPECT_EQ(values[0], 1.0f);
  EXPECT_EQ(error(), first);
}

TEST_F(FaultTest, LaunchesThatNoCardTakesAreErrors) {
  for (const Launch& launch : {Launch{.n_threads = 31}, Launch{.n_threads = 2048}, Launch{.x = 0, .n_threads = 32},
                               Launch{.y = 65536, .n_threads = 32}, Launch{.n_threads = 32, .shared_bytes = 1 << 20}}) {
    device_ = make_emulated_device();
    EXPECT_EQ(error_of(diverge_at_barrier, launch, NoArgs{}).find("kernel broken: "), 0u);
  }
}

TEST_F(FaultTest, ACopyOutOfAnAllocationIsAnError) {
  float* values = upload(std::vector<float>(32));
  device_->clear(values + 1, 128);
  EXPECT_NE(error().find("clear of 128 bytes"), std::string::npos);
}

}  // namespace
}  // namespace candor::backend::cuda
