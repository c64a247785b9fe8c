#pragma once
// Passes over a whole row of logits. Each is a fixed sequence of IEEE operations an element, maxima, and integer sums,
// so that neither the width of a vector nor the instruction set changes a bit.

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace candor::sample {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A weight is e^(logit - greatest logit) in units of 2^-40, rounded to the nearest integer: sums are exact in any
// order.
inline constexpr double kWeightUnit = 0x1p-40;

// The weight of `share` = e^(logit - greatest logit) <= 1.
inline uint64_t weight_of(float share) {
  constexpr double kInteger = 0x1p52;  // a double of this size holds no fraction
  const double rounded = static_cast<double>(share * 0x1p40f) + kInteger;
  return std::bit_cast<uint64_t>(rounded) - std::bit_cast<uint64_t>(kInteger);
}

// Chunk c of a row holds the elements [c * kChunk, (c + 1) * kChunk); the last may be shorter.
inline constexpr size_t kChunk = 64;

struct RowRange {
  float greatest = 0.0f;  // -inf for an empty row
  bool is_valid = true;   // neither NaN nor +inf in it
};

// copy: [V], overwritten with the row; may be the row. Overwrites maxima with the greatest element of each chunk.
RowRange scan_row(std::span<const float> row, float* copy, std::vector<float>& maxima);
// dst[i] = (src[i] - greatest) / divisor; may be the same.
void scale_row(std::span<const float> src, float greatest, float divisor, float* dst);

}  // namespace candor::sample
