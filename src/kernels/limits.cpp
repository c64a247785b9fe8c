#include "kernels/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "platform/huge_buffer.h"

namespace candor::kernels {

namespace {

// Short runs, so that some of them are not interrupted on a busy machine; the best one counts. Tables that are slow, as
// the portable one is, get few of them.
constexpr int kRuns = 48;
constexpr int kLeastRuns = 2;
constexpr double kSecondsOfRuns = 0.1;
constexpr double kSecondsOfARun = 0.2e-3;
constexpr int64_t kFewRounds = 10'000;
constexpr int64_t kRounds = 100'000;  // int8 sums stay below 2^31
// Those from memory are longer, so that threads that measure at once meet. Each reads what no other did before it, and
// what is written last of all drives the rest out of every cache.
constexpr int kDramRuns = 4;
constexpr size_t kDramRunBytes = size_t{24} << 20;
constexpr size_t kDramBytes = kDramRuns * kDramRunBytes;  // of a probe
constexpr size_t kCacheBytes = size_t{64} << 20;
constexpr size_t kL2Bytes = size_t{256} << 10;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

using ReadProbe = uint64_t (*)(const std::byte* src, size_t n_bytes);

double bytes_a_second(ReadProbe probe, const std::byte* memory, size_t n_bytes, int n_repeats) {
  volatile uint64_t sink = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < n_repeats; ++i) sink = sink + probe(memory, n_bytes);
  return static_cast<double>(n_bytes) * n_repeats / seconds_since(begin);
}

template <class Run>
double best_of(const Run& run) {
  double best = 0;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < kRuns && (i < kLeastRuns || seconds_since(begin) < kSecondsOfRuns); ++i) {
    best = std::max(best, run());
  }
  return best;
}

void measure_reads(ReadProbe probe, const std::byte* memory, MachineLimits& limits) {
  for (size_t run = 0; run < kDramRuns; ++run) {
    const double rate = bytes_a_second(probe, memory + run * kDramRunBytes, kDramRunBytes, 1);
    limits.dram_read_bytes = std::max(limits.dram_read_bytes, rate);
  }
  const double l2 = best_of([&] { return bytes_a_second(probe, memory, kL2Bytes, 100); });
  limits.l2_read_bytes = std::max(limits.l2_read_bytes, l2);
}

using OpsProbe = int64_t (*)(int64_t n_rounds);

bool is_slow(OpsProbe probe) {
  const Clock::time_point begin = Clock::now();
  static_cast<void>(probe(kFewRounds));
  return seconds_since(begin) >= kSecondsOfARun;
}

double ops_a_second(OpsProbe probe) {
  const int64_t n_rounds = is_slow(probe) ? kFewRounds : kRounds;
  return best_of([&] {
    const Clock::time_point begin = Clock::now();
    const int64_t ops = probe(n_rounds);
    return static_cast<double>(ops) / seconds_since(begin);
  });
}

}  // namespace

double MachineLimits::ops(Arithmetic arithmetic) const {
  switch (arithmetic) {
    case Arithmetic::kInt8:
      return int8_ops;
    case Arithmetic::kBf16:
      return bf16_flops;
    case Arithmetic::kF32:
      return f32_flops;
  }
  return 0;
}

MachineLimits measure_limits(const KernelTable& table) {
  MachineLimits limits;
  auto memory = platform::HugeBuffer::allocate(2 * kDramBytes + kCacheBytes, "a measurement of memory");  // as weights
  if (!memory) return limits;
  std::memset(memory->data(), 1, memory->size());
  measure_reads(table.read_probe, memory->data(), limits);
  measure_reads(table.far_read_probe, memory->data() + kDramBytes, limits);
  limits.int8_ops = ops_a_second(table.int8_probe);
  limits.bf16_flops = ops_a_second(table.bf16_probe);
  limits.f32_flops = ops_a_second(table.fma_probe);
  return limits;
}

}  // namespace candor::kernels
