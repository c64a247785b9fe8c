#pragma once
// Scalar arithmetic of the reference backend: fixed sequences of IEEE double operations.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace candor::backend::reference {

// Sum of a[i] * b[i] in eight interleaved accumulators (element i goes to i mod 8), added as a tree. Eight, so that the
// compiler may use any vector width without changing the result.
inline double dot(const double* a, const double* b, size_t n) {
  double sums[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (size_t lane = 0; i < n; ++i, ++lane) sums[lane] += a[i] * b[i];
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// 1 / k! for k = 0 .. 13. On |r| <= ln2 / 2 the first term left out is below 2^-57.
inline constexpr std::array<double, 14> kInverseFactorials = [] {
  std::array<double, 14> inverse{};
  double factorial = 1.0;
  for (size_t k = 0; k < inverse.size(); ++k) {
    factorial *= k == 0 ? 1.0 : static_cast<double>(k);
    inverse[k] = 1.0 / factorial;
  }
  return inverse;
}();

// e^x, about 1 ulp. 0 below -708, e^708 above 708; NaN gives NaN.
inline double exp(double x) {
  constexpr double kLog2e = 1.4426950408889634074;
  constexpr double kLn2Hi = 6.93147180369123816490e-01;  // 33 bits: n * kLn2Hi is exact for |n| < 2^20
  constexpr double kLn2Lo = 1.90821492927058770002e-10;
  constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding and subtracting it rounds to an integer
  constexpr double kMax = 708.0;
  if (x != x) return x;
  if (x < -kMax) return 0.0;
  if (x > kMax) x = kMax;
  const double n = (x * kLog2e + kRound) - kRound;
  const double r = (x - n * kLn2Hi) - n * kLn2Lo;
  double sum = 0.0;
  for (size_t k = kInverseFactorials.size(); k-- > 0;) sum = sum * r + kInverseFactorials[k];
  const uint64_t exponent = static_cast<uint64_t>(static_cast<int64_t>(n) + 1023) << 52;
  return sum * std::bit_cast<double>(exponent);
}

// 1 / (1 + e^-x)
inline double sigmoid(double x) {
  return 1.0 / (1.0 + exp(-x));
}

}  // namespace candor::backend::reference
