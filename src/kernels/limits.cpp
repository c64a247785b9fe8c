#include "kernels/limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "platform/huge_buffer.h"

namespace candor::kernels {

namespace {

// Short runs, so that some of them are not interrupted on a busy machine; the best one counts.
constexpr int kRuns = 48;
constexpr size_t kDramBytes = size_t{192} << 20;
constexpr size_t kDramRunBytes = kDramBytes / kRuns;  // each run reads memory that no cache holds any more
constexpr size_t kL2Bytes = size_t{256} << 10;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

using ReadProbe = uint64_t (*)(const std::byte* src, size_t n_bytes);

// The best rate of kRuns runs; run i reads n_bytes, n_repeats times, from memory + i * step.
double read_rate(ReadProbe probe, const std::byte* memory, size_t n_bytes, size_t step, int n_repeats) {
  double best = 0;
  volatile uint64_t sink = 0;
  for (size_t run = 0; run < kRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < n_repeats; ++i) sink = sink + probe(memory + run * step, n_bytes);
    best = std::max(best, static_cast<double>(n_bytes) * n_repeats / seconds_since(begin));
  }
  return best;
}

double rate(int64_t (*probe)(int64_t), int64_t n_rounds) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Clock::time_point begin = Clock::now();
    const int64_t ops = probe(n_rounds);
    best = std::max(best, static_cast<double>(ops) / seconds_since(begin));
  }
  return best;
}

}  // namespace

MachineLimits measure_limits(const KernelTable& table) {
  MachineLimits limits;
  auto memory = platform::HugeBuffer::allocate(kDramBytes, "a measurement of memory");  // as weights lie
  if (!memory) return limits;
  std::memset(memory->data(), 1, kDramBytes);
  for (const ReadProbe probe : {table.read_probe, table.far_read_probe}) {
    limits.dram_read_bytes =
        std::max(limits.dram_read_bytes, read_rate(probe, memory->data(), kDramRunBytes, kDramRunBytes, 1));
    limits.l2_read_bytes = std::max(limits.l2_read_bytes, read_rate(probe, memory->data(), kL2Bytes, 0, 100));
  }
  constexpr int64_t kRounds = 100'000;  // some 0.3 ms; int8 sums stay below 2^31
  limits.int8_ops = rate(table.int8_probe, kRounds);
  limits.f32_flops = rate(table.fma_probe, kRounds);
  return limits;
}

}  // namespace candor::kernels
