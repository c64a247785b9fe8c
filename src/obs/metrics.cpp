#include "obs/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace candor::obs {

// Below 8: the value itself. Above: position of the leading bit, then the three bits behind it.
size_t Histogram::bucket_of(uint64_t value) noexcept {
  if (value < kSubBuckets) return static_cast<size_t>(value);
  const int shift = static_cast<int>(std::bit_width(value)) - 1 - kSubBits;
  const uint64_t sub = (value >> shift) - kSubBuckets;
  return static_cast<size_t>(shift + 1) * kSubBuckets + static_cast<size_t>(sub);
}

uint64_t Histogram::bucket_upper(size_t bucket) noexcept {
  if (bucket < kSubBuckets) return bucket;
  const size_t shift = bucket / kSubBuckets - 1;
  const uint64_t lower = (kSubBuckets + bucket % kSubBuckets) << shift;
  return lower + ((uint64_t{1} << shift) - 1);
}

void Histogram::record(uint64_t value) noexcept {
  counts_[bucket_of(value)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
  uint64_t seen = max_.load(std::memory_order_relaxed);
  while (value > seen && !max_.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

Histogram::Summary Histogram::summary() const noexcept {
  Summary summary;
  for (size_t i = 0; i < kBuckets; ++i) summary.count += bucket_count(i);
  summary.sum = sum_.load(std::memory_order_relaxed);
  summary.max = max_.load(std::memory_order_relaxed);
  return summary;
}

uint64_t Histogram::quantile(double q) const noexcept {
  const Summary all = summary();
  if (all.count == 0) return 0;
  const double wanted = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(all.count));
  const uint64_t rank = std::max<uint64_t>(1, static_cast<uint64_t>(wanted));
  uint64_t below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    below += bucket_count(i);
    if (below >= rank) return std::min(bucket_upper(i), all.max);
  }
  return all.max;
}

}  // namespace candor::obs
