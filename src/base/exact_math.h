#pragma once
// Elementary functions as fixed sequences of IEEE operations: the same bits on every machine, compiler and
// instruction set (numerics.md, rules 1 and 5). The vector kernels repeat these sequences lane by lane.
// Float mode: round to nearest even, FTZ and DAZ.

#include <bit>
#include <cmath>
#include <cstdint>

namespace candor {

// Coefficients of exp(r) on [-ln2/2, ln2/2]: minimax, degree 6 with exp(r) = 1 + r + r^2 * P(r).
namespace exp_constants {
inline constexpr float kLog2e = 1.44269504088896341f;
inline constexpr float kLn2Hi = 0.693145751953125f;  // 16 significant bits: n * kLn2Hi is exact for |n| < 256
inline constexpr float kLn2Lo = 1.42860682030941723212e-6f;
inline constexpr float kP0 = 0.5f;
inline constexpr float kP1 = 0.16666667163372039795f;
inline constexpr float kP2 = 0.04166652262210845947f;
inline constexpr float kP3 = 0.00833337195217609406f;
inline constexpr float kP4 = 0.00139304355252534151f;
inline constexpr float kP5 = 0.00019894674187526107f;
inline constexpr float kMax = 88.0f;   // results stay finite
inline constexpr float kMin = -87.0f;  // results stay normal; below it exp is exactly 0
// 1.5 * 2^23 + 127: adding it rounds to an integer n, and the lowest bits of the sum are n + 127, the exponent of 2^n.
// No x * kLog2e lies halfway between two integers, so that an odd number rounds as an even one would.
inline constexpr float kRound = 12583039.0f;
}  // namespace exp_constants

// e^x, at most 2 ulp. x below kMin gives 0; x above kMax gives exp(kMax). NaN gives NaN.
inline float exp_f32(float x) {
  namespace k = exp_constants;
  if (x < k::kMin) return 0.0f;
  if (x > k::kMax) x = k::kMax;
  const float shifted = std::fma(x, k::kLog2e, k::kRound);
  const float n = shifted - k::kRound;
  float r = std::fma(n, -k::kLn2Hi, x);
  r = std::fma(n, -k::kLn2Lo, r);
  float p = std::fma(k::kP5, r, k::kP4);
  p = std::fma(p, r, k::kP3);
  p = std::fma(p, r, k::kP2);
  p = std::fma(p, r, k::kP1);
  p = std::fma(p, r, k::kP0);
  const float y = std::fma(r * r, p, r) + 1.0f;
  const uint32_t exponent = std::bit_cast<uint32_t>(shifted) << 23;
  return y * std::bit_cast<float>(exponent);
}

// x / (1 + e^-x). The division is IEEE, so it is exact in the sense of correctly rounded.
inline float silu_f32(float x) {
  return x / (1.0f + exp_f32(-x));
}

}  // namespace candor
