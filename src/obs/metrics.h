#pragma once
// Counters and histograms that any thread may increment without a lock; reading gives a moment's values. Fixed size, no
// allocation after construction.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace candor::obs {

class Counter {
 public:
  void add(uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Of non-negative integers (nanoseconds, tokens, bytes). Buckets are log-spaced, eight to a power of two: values below
// 16 are exact, and a quantile is at most 12.5 % above the true one.
class Histogram {
 public:
  static constexpr int kSubBits = 3;
  static constexpr size_t kSubBuckets = size_t{1} << kSubBits;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) * kSubBuckets;

  // What was seen up to a moment.
  struct Summary {
    uint64_t count = 0;
    uint64_t sum = 0;  // wraps past 2^64
    uint64_t max = 0;
    double mean() const { return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count); }
  };

  void record(uint64_t value) noexcept;
  Summary summary() const noexcept;
  // Upper end of the bucket that holds the q-th value (q in [0, 1]), at most max; 0 when nothing was recorded.
  uint64_t quantile(double q) const noexcept;

  // For those who publish the buckets themselves.
  static size_t bucket_of(uint64_t value) noexcept;
  static uint64_t bucket_upper(size_t bucket) noexcept;  // largest value of the bucket
  uint64_t bucket_count(size_t bucket) const noexcept { return counts_[bucket].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, kBuckets> counts_{};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> max_{0};
};

}  // namespace candor::obs
