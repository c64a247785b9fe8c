#pragma once
// Parts of the order "descending key, then ascending index" without sorting everything: what a full sort would give, at
// the cost of a few passes. Holds scratch memory only.

#include <cstdint>
#include <span>
#include <vector>

namespace candor::sample {

struct Ranked {
  float key = 0.0f;
  uint32_t index = 0;
};

inline bool precedes(const Ranked& a, const Ranked& b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

class Selection {
 public:
  // No later call with at most n keys allocates.
  void reserve(size_t n);
  // The first n of the order (all there are, if fewer), sorted; keys of -inf belong to no order. maxima: of the keys'
  // chunks (scan_row), or empty.
  void first(std::span<const float> keys, std::span<const float> maxima, size_t n, std::vector<Ranked>& out);
  // The element with which the sum of weight_of(share), taken in order, first exceeds `target`.
  // REQUIRES: all weights together exceed `target`; greatest is the greatest key.
  Ranked crossing(std::span<const float> keys, float greatest, std::span<const float> shares, uint64_t target);

 private:
  std::vector<float> sorted_maxima_;
  std::vector<uint64_t> sums_;
  std::vector<uint16_t> buckets_;
  std::vector<Ranked> items_;
};

}  // namespace candor::sample
