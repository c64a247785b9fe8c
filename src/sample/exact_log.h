#pragma once
// The natural logarithm as a fixed sequence of IEEE double operations: the same bits everywhere (numerics.md, rule 1).
// log(m * 2^e) = e * ln2 + 2 * atanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)).

#include <bit>
#include <cstdint>

namespace candor::sample {

// Relative error below 1e-15. REQUIRES: x is finite, positive and normal.
inline double log_f64(double x) {
  constexpr double kLn2 = 0.69314718055994530942;
  constexpr uint64_t kMantissa = 0x000fffffffffffffull;
  constexpr uint64_t kOne = 0x3ff0000000000000ull;
  constexpr double kSqrt2 = 1.41421356237309504880;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & kMantissa) | kOne);
  if (m >= kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);  // |s| <= 0.1716, so that s^25 is below 2^-60
  const double square = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * kLn2 + 2.0 * s * sum;
}

}  // namespace candor::sample
