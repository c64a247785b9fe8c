// Fork and join of an empty job: what every operation of a step pays. Median and 99th percentile in microseconds.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "platform/thread_pool.h"

namespace candor::platform {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

void spend(double us) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::micro>(us);
  while (std::chrono::steady_clock::now() < end) {
  }
}

void measure(ThreadPool& pool, const char* name, int gap_us, double unit_us) {
  std::vector<double> us;
  for (int i = 0; i < 2000; ++i) {
    if (gap_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(gap_us));
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for({.n_units = 16}, [&](UnitRange range) {
      if (unit_us > 0) spend(unit_us * static_cast<double>(range.end - range.begin));
    });
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("%d threads  %-34s median %8.2f us   p99 %8.2f us\n", pool.n_threads(), name, quantile(us, 0.5),
              quantile(us, 0.99));
}

}  // namespace
}  // namespace candor::platform

int main(int argc, char** argv) {
  using namespace candor::platform;
  const int n_threads = argc > 1 ? std::atoi(argv[1]) : 2;
  for (const int n : {1, n_threads}) {
    auto pool = ThreadPool::start({.n_threads = n});
    if (!pool) return 2;
    (*pool)->begin_burst();
    measure(**pool, "empty, in a burst", 0, 0);
    measure(**pool, "16 x 5 us, in a burst", 0, 5);
    (*pool)->end_burst();
    measure(**pool, "empty, after 500 us of sleep", 500, 0);
    measure(**pool, "16 x 5 us, after 500 us of sleep", 500, 5);
  }
  return 0;
}
