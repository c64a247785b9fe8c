#pragma once
// Passes over a whole row of logits. Each is a fixed sequence of IEEE operations an element, maxima, and integer sums,
// so that neither the width of a vector nor the instruction set changes a bit.

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernels.h"

namespace candor::sample {

// A weight is e^(logit - greatest logit) in units of 2^-40, rounded to the nearest integer: sums are exact in any
// order.
inline constexpr double kWeightUnit = 0x1p-40;

// The weight of `share` = e^(logit - greatest logit) <= 1.
inline uint64_t weight_of(float share) {
  constexpr double kInteger = 0x1p52;  // a double of this size holds no fraction
  const double rounded = static_cast<double>(share * 0x1p40f) + kInteger;
  return std::bit_cast<uint64_t>(rounded) - std::bit_cast<uint64_t>(kInteger);
}

// Maxima of chunks of kChunk elements each; chunk c holds the elements chunk_begin(c) + kLanes * j.
inline constexpr size_t kLanes = 16;
inline constexpr size_t kChunk = 64;
inline constexpr size_t chunk_begin(size_t chunk) {
  return chunk / kLanes * (kLanes * kChunk) + chunk % kLanes;
}

struct RowRange {
  float greatest = 0.0f;  // -inf for an empty row
  bool is_valid = true;   // neither NaN nor +inf in it
};

// Overwrites maxima.
RowRange scan_row(std::span<const float> row, std::vector<float>& maxima);
// dst[i] = (src[i] - greatest) / divisor; may be the same.
void scale_row(std::span<const float> src, float greatest, float divisor, float* dst);
// shares: [V], overwritten with e^(row[i] - greatest); returns the sum of their weights.
uint64_t weigh_row(const kernels::KernelTable& kernels, std::span<const float> row, float greatest, float* shares);

}  // namespace candor::sample
