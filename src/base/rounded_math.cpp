#include "base/rounded_math.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace candor {
namespace {

// hi + lo, where lo is at most half an ulp of hi: some 106 bits (Dekker 1971, Knuth).
struct Double2 {
  double hi;
  double lo;
};

constexpr Double2 kLn2 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr Double2 kHalfPi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};

Double2 sum_of(double a, double b) {
  const double s = a + b;
  const double part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}

// The first 26 bits of a, and the rest.
Double2 halves_of(double a) {
  constexpr double kSplit = 134217729.0;  // 2^27 + 1
  const double c = kSplit * a;
  const double hi = c - (c - a);
  return {hi, a - hi};
}

Double2 product_of(double a, double b) {
  const double p = a * b;
  const Double2 x = halves_of(a);
  const Double2 y = halves_of(b);
  return {p, ((x.hi * y.hi - p) + x.hi * y.lo + x.lo * y.hi) + x.lo * y.lo};
}

Double2 operator+(Double2 a, Double2 b) {
  const Double2 s = sum_of(a.hi, b.hi);
  const Double2 t = sum_of(a.lo, b.lo);
  const Double2 u = sum_of(s.hi, s.lo + t.hi);
  return sum_of(u.hi, u.lo + t.lo);
}

Double2 operator*(Double2 a, Double2 b) {
  const Double2 p = product_of(a.hi, b.hi);
  return sum_of(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

Double2 operator-(Double2 a) {
  return {-a.hi, -a.lo};
}

Double2 operator/(Double2 a, Double2 b) {
  const double first = a.hi / b.hi;
  const Double2 rest = a + -(b * Double2{first, 0.0});
  const double second = rest.hi / b.hi;
  const Double2 last = rest + -(b * Double2{second, 0.0});
  return sum_of(first, second) + Double2{last.hi / b.hi, 0.0};
}

// 2 (s + s^3 / 3 + s^5 / 5 + ...) with s = (m - 1) / (m + 1), and the exponent's share. REQUIRES: x is positive and
// finite.
Double2 log_of(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2.0;
    --exponent;
  }
  const Double2 s = sum_of(m, -1.0) / sum_of(m, 1.0);
  const Double2 square = s * s;
  Double2 series = {0.0, 0.0};
  constexpr int kLast = 47;  // s <= 0.172: what follows is below 2^-120
  for (int n = kLast; n >= 1; n -= 2) {
    series = series * square + Double2{1.0, 0.0} / Double2{static_cast<double>(n), 0.0};
  }
  const Double2 twice = s * series;
  return Double2{2.0 * twice.hi, 2.0 * twice.lo} + kLn2 * Double2{static_cast<double>(exponent), 0.0};
}

// Taylor's series of (x - k ln 2) / 512, squared nine times. REQUIRES: |x| < kMostExponent.
double exp_of(Double2 x) {
  const double k = std::nearbyint(x.hi / kLn2.hi);
  constexpr int kSquarings = 9;
  Double2 r = x + -(kLn2 * Double2{k, 0.0});
  r = {std::ldexp(r.hi, -kSquarings), std::ldexp(r.lo, -kSquarings)};
  Double2 series = {1.0, 0.0};
  constexpr int kLast = 11;  // |r| < 2^-10.5: what follows is below 2^-120
  for (int n = kLast; n >= 1; --n) {
    series = series * r / Double2{static_cast<double>(n), 0.0} + Double2{1.0, 0.0};
  }
  for (int i = 0; i < kSquarings; ++i) series = series * series;
  return std::ldexp(series.hi, static_cast<int>(k));
}

constexpr double kMostExponent = 800.0;  // e^800 is beyond every double, and e^-800 below it

// REQUIRES: |x| >= kMostExponent, or NaN.
double exp_of_extreme(double x) {
  if (std::isnan(x)) return x;
  return x > 0.0 ? std::numeric_limits<double>::infinity() : 0.0;
}

// Taylor's series (-1)^(n / 2) r^(n - first) / n! with n = first, first + 2, ... last, in powers of r^2. Up to 18!,
// which a double holds exactly, so that what is left out is below 2^-58 for |r| <= pi / 4.
constexpr int kTerms = 8;

constexpr std::array<double, kTerms> taylor(int first) {
  std::array<double, kTerms> coefficients{};
  double factorial = 1.0;
  for (int n = 1, i = 0; i < kTerms; ++n) {
    factorial *= n;
    if (n < first || (n - first) % 2 != 0) continue;
    coefficients[static_cast<size_t>(i++)] = (n / 2 % 2 == 0 ? 1.0 : -1.0) / factorial;
  }
  return coefficients;
}
constexpr auto kSine = taylor(3);
constexpr auto kCosine = taylor(4);

double series_of(const std::array<double, kTerms>& coefficients, double square) {
  double sum = coefficients[kTerms - 1];
  for (size_t i = kTerms - 1; i-- > 0;) sum = coefficients[i] + square * sum;
  return sum;
}

}  // namespace

SinCos rounded_sincos(double angle) {
  constexpr double kMost = 0x1p45;  // the third part of pi / 2 counts beyond it
  if (!(std::fabs(angle) < kMost)) {
    return {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  }
  const double k = std::nearbyint(angle / kHalfPi.hi);
  const Double2 quarter_turns = product_of(k, kHalfPi.hi);
  const Double2 r = sum_of(angle - quarter_turns.hi, -(quarter_turns.lo + k * kHalfPi.lo));
  const double square = r.hi * r.hi;
  const double sine = r.hi + (r.lo * (1.0 - 0.5 * square) + r.hi * (square * series_of(kSine, square)));
  const double half = 0.5 * square;
  const double rounded = 1.0 - half;
  const double cosine =
      rounded + (((1.0 - rounded) - half) + (square * (square * series_of(kCosine, square)) - r.hi * r.lo));
  switch (static_cast<long long>(k) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

double rounded_log(double x) {
  if (x == 0.0) return -std::numeric_limits<double>::infinity();
  if (!(x > 0.0)) return std::numeric_limits<double>::quiet_NaN();
  return std::isinf(x) ? x : log_of(x).hi;
}

double rounded_exp(double x) {
  return std::fabs(x) < kMostExponent ? exp_of({x, 0.0}) : exp_of_extreme(x);
}

double rounded_pow(double base, double exponent) {
  if (!(base > 0.0) || std::isinf(base)) return std::numeric_limits<double>::quiet_NaN();
  const Double2 log = log_of(base);
  const double rough = log.hi * exponent;
  return std::fabs(rough) < kMostExponent ? exp_of(log * Double2{exponent, 0.0}) : exp_of_extreme(rough);
}

double rounded_tanh(double x) {
  constexpr double kFar = 20.0;  // 1 - tanh is below 2^-57
  if (x > kFar) return 1.0;
  if (x < -kFar) return -1.0;
  return 1.0 - 2.0 / (rounded_exp(2.0 * x) + 1.0);
}

// 2 / sqrt(pi) e^-z^2 times the sum of 2^n z^(2n+1) / (1 * 3 * ... * (2n + 1)), whose terms are all of one sign.
double rounded_erf(double x) {
  constexpr double kFar = 6.0;  // erfc is below 2^-55
  constexpr double kTwoByRootPi = 1.1283791670955126;
  if (!(x <= kFar)) return x > kFar ? 1.0 : x;
  if (x < -kFar) return -1.0;
  double term = x, sum = x;
  for (double odd = 3.0; sum + term != sum; odd += 2.0) {
    term *= 2.0 * x * x / odd;
    sum += term;
  }
  return kTwoByRootPi * rounded_exp(-x * x) * sum;
}

}  // namespace candor
