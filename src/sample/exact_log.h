#pragma once
// Logarithm, exponential and power as fixed sequences of IEEE double operations: the same bits everywhere (numerics.md,
// rule 1).

#include <bit>
#include <cstdint>

namespace candor::sample {

// log(m * 2^e) = e * ln2 + 2 * atanh((m - 1) / (m + 1)) with m in [sqrt(1/2), sqrt(2)).
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

// e^x for -700 <= x <= 700, relative error below 1e-14: 2^n * e^r by the series of e^r, |r| <= ln2 / 2.
inline double exp_f64(double x) {
  constexpr double kLog2e = 1.44269504088896340736;
  constexpr double kLn2Hi = 0.693147180369123816490;  // 32 significant bits: n * kLn2Hi is exact
  constexpr double kLn2Lo = 1.90821492927058770002e-10;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds to an integer
  const double n = (x * kLog2e + kRound) - kRound;
  const double r = (x - n * kLn2Hi) - n * kLn2Lo;
  double sum = 1.0;
  for (int k = 14; k >= 1; --k) sum = 1.0 + sum * r / k;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52);
}

// x^y for x >= 0 and y log x <= 700; what lies below e^-700 is 0.
inline double pow_f64(double x, double y) {
  if (y == 0.0) return 1.0;
  if (x < 1e-300) return 0.0;
  const double power = y * log_f64(x);
  return power < -700.0 ? 0.0 : exp_f64(power);
}

}  // namespace candor::sample
