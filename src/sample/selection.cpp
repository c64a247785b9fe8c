#include "sample/selection.h"

#include <algorithm>
#include <cstddef>
#include <functional>

#include "base/error.h"
#include "sample/row_passes.h"

namespace candor::sample {
namespace {

constexpr size_t kBuckets = 2048;  // their sums stay in the first-level cache

// Keys fall into buckets by their distance from the greatest; a greater key never lands in a later bucket.
struct Scale {
  float greatest;
  float per_unit;

  uint16_t bucket(float key) const {
    const float place = (greatest - key) * per_unit;
    constexpr float kLast = kBuckets - 1;
    return static_cast<uint16_t>(static_cast<int32_t>(place < kLast ? place : kLast));
  }
};

// The span of keys that have a weight at all is at most 29; what lies lower shares the last bucket.
Scale make_scale(std::span<const float> keys, float greatest) {
  float least = greatest;
  for (const float key : keys) least = key < least && key > -kInfinity ? key : least;
  const float span = std::min(greatest - least, 29.0f);
  return {greatest, span > 0.0f ? std::min(static_cast<float>(kBuckets - 1) / span, 1e30f) : 0.0f};
}

void gather(std::span<const float> keys, float least, std::vector<Ranked>& out) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (keys[i] >= least && keys[i] > -kInfinity) out.push_back({keys[i], static_cast<uint32_t>(i)});
  }
}

void gather_chunks(std::span<const float> keys, std::span<const float> maxima, float least, std::vector<Ranked>& out) {
  for (size_t chunk = 0; chunk < maxima.size(); ++chunk) {
    if (maxima[chunk] < least || maxima[chunk] == -kInfinity) continue;
    const size_t end = std::min(keys.size(), (chunk + 1) * kChunk);
    for (size_t i = chunk * kChunk; i < end; ++i) {
      if (keys[i] >= least && keys[i] > -kInfinity) out.push_back({keys[i], static_cast<uint32_t>(i)});
    }
  }
}

// Compiled into the algorithms that take it, as a function's address isn't.
constexpr auto kOrder = [](const Ranked& a, const Ranked& b) { return precedes(a, b); };

size_t count_from(std::span<const float> keys, std::span<const float> maxima, float least) {
  size_t count = 0;
  for (size_t chunk = 0; chunk < maxima.size(); ++chunk) {
    if (maxima[chunk] < least) continue;
    const auto part = keys.subspan(chunk * kChunk, std::min(kChunk, keys.size() - chunk * kChunk));
    int32_t of_chunk = 0;
    for (const float key : part) of_chunk += key >= least ? 1 : 0;
    count += static_cast<size_t>(of_chunk);
  }
  return count;
}

// A key that at least n of them reach, and seldom more than twice as many; -inf where there are not so many.
float reached_by(std::span<const float> keys, std::span<const float> maxima, size_t n) {
  constexpr float kFarthest = 1e6f;
  constexpr int kHalvings = 6;
  const float greatest = *std::ranges::max_element(maxima);
  float near = 0.0f;
  float far = 1.0f;
  size_t count = count_from(keys, maxima, greatest - far);
  while (count < n && far < kFarthest) {
    near = far;
    far *= 2.0f;
    count = count_from(keys, maxima, greatest - far);
  }
  if (count < n) return -kInfinity;
  for (int i = 0; i < kHalvings && count > 2 * n; ++i) {
    const float middle = 0.5f * (near + far);
    const size_t nearer = count_from(keys, maxima, greatest - middle);
    if (nearer < n) near = middle;
    if (nearer < n) continue;
    far = middle;
    count = nearer;
  }
  return greatest - far;
}

}  // namespace

void Selection::reserve(size_t n) {
  sorted_maxima_.reserve(n / kChunk + 1);
  sums_.reserve(kBuckets);
  buckets_.reserve(n);
  items_.reserve(n);
}

// At least n keys reach the n-th greatest chunk maximum, so that nothing below it can be among the first n.
void Selection::first(std::span<const float> keys, std::span<const float> maxima, size_t n, std::vector<Ranked>& out) {
  out.clear();
  if (n == 0) return;
  if (maxima.empty()) {
    gather(keys, -kInfinity, out);
  } else if (n > maxima.size() / 2) {
    gather_chunks(keys, maxima, reached_by(keys, maxima, n), out);
  } else {
    sorted_maxima_.assign(maxima.begin(), maxima.end());
    const auto nth = sorted_maxima_.begin() + static_cast<std::ptrdiff_t>(n - 1);
    std::nth_element(sorted_maxima_.begin(), nth, sorted_maxima_.end(), std::greater<>());
    gather_chunks(keys, maxima, *nth, out);
  }
  if (n < out.size()) {
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n), out.end(), kOrder);
    out.resize(n);
  }
  std::sort(out.begin(), out.end(), kOrder);
}

Ranked Selection::crossing(std::span<const float> keys, float greatest, std::span<const float> shares,
                           uint64_t target) {
  const Scale scale = make_scale(keys, greatest);
  sums_.assign(kBuckets, 0);
  buckets_.resize(std::max(buckets_.size(), keys.size()));
  for (size_t i = 0; i < keys.size(); ++i) buckets_[i] = scale.bucket(keys[i]);
  for (size_t i = 0; i < keys.size(); ++i) sums_[buckets_[i]] += weight_of(shares[i]);
  uint64_t sum = 0;
  size_t bucket = 0;
  while (sum + sums_[bucket] <= target) sum += sums_[bucket++];
  items_.clear();
  for (size_t i = 0; i < keys.size(); ++i) {
    if (buckets_[i] == bucket) items_.push_back({keys[i], static_cast<uint32_t>(i)});
  }
  if (!std::ranges::is_sorted(items_, kOrder)) std::sort(items_.begin(), items_.end(), kOrder);
  for (const Ranked& item : items_) {
    sum += weight_of(shares[item.index]);
    if (sum > target) return item;
  }
  CANDOR_CHECK(false && "the weights do not exceed the target");
  return {};
}

}  // namespace candor::sample
