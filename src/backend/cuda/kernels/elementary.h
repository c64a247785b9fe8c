#pragma once
// exp, tanh, erf and what is made of them, of one float on the device: the lines of kernels/generic/elementary.inl.h,
// with a float in place of 16 lanes. Included behind language.h. Order: docs/numerics.md, "Rows".

#include <cstdint>

#include "backend/cuda/kernels/language.h"
#include "base/exact_math.h"

namespace candor::backend::cuda {

namespace elementary {

using F32 = float;
using I32 = int32_t;

CANDOR_DEVICE float load(const float* p) {
  return *p;
}
CANDOR_DEVICE void store(float* p, float a) {
  *p = a;
}
CANDOR_DEVICE float splat(float x) {
  return x;
}
CANDOR_DEVICE float add(float a, float b) {
  return add_rn(a, b);
}
CANDOR_DEVICE float sub(float a, float b) {
  return sub_rn(a, b);
}
CANDOR_DEVICE float mul(float a, float b) {
  return mul_rn(a, b);
}
CANDOR_DEVICE float div(float a, float b) {
  return div_rn(a, b);
}
CANDOR_DEVICE float fma(float a, float b, float c) {
  return fma_rn(a, b, c);
}
// The second one where either is NaN.
CANDOR_DEVICE float max(float a, float b) {
  return a > b ? a : b;
}
CANDOR_DEVICE float min(float a, float b) {
  return a < b ? a : b;
}
CANDOR_DEVICE float zero_if_less(float y, float x, float limit) {
  return x < limit ? 0.0f : y;
}

CANDOR_DEVICE int32_t splat_i(int32_t x) {
  return x;
}
CANDOR_DEVICE int32_t and_i(int32_t a, int32_t b) {
  return a & b;
}
CANDOR_DEVICE int32_t or_i(int32_t a, int32_t b) {
  return a | b;
}
template <int n>
CANDOR_DEVICE int32_t shl_i(int32_t a) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) << n);
}
CANDOR_DEVICE int32_t f32_to_bits(float a) {
  return static_cast<int32_t>(bits_of(a));
}
CANDOR_DEVICE float bits_to_f32(int32_t a) {
  return float_of(static_cast<uint32_t>(a));
}

#define CANDOR_ELEMENTARY CANDOR_DEVICE
#define CANDOR_CONSTANT CANDOR_TABLE float
#include "kernels/generic/elementary.inl.h"
#undef CANDOR_ELEMENTARY
#undef CANDOR_CONSTANT

}  // namespace elementary

// Below -87 it is 0, above 88 it stays exp(88). REQUIRES of the second: x <= 88, or NaN.
CANDOR_DEVICE float exp_of(float x) {
  return elementary::exp16(x);
}
CANDOR_DEVICE float exp_capped_of(float x) {
  return elementary::exp16_capped(x);
}

CANDOR_DEVICE float silu_of(float x) {
  return elementary::silu16(x);
}
CANDOR_DEVICE float sigmoid_of(float x) {
  return elementary::sigmoid16(x);
}
CANDOR_DEVICE float gelu_of(float x) {
  return elementary::gelu16(x);
}
CANDOR_DEVICE float gelu_erf_of(float x) {
  return elementary::gelu_erf16(x);
}
CANDOR_DEVICE float relu_of(float x) {
  return elementary::relu16(x);
}
CANDOR_DEVICE float relu_squared_of(float x) {
  return elementary::relu_squared16(x);
}
CANDOR_DEVICE float tanh_of(float x) {
  return elementary::tanh16(x);
}
CANDOR_DEVICE float softplus_of(float x) {
  return elementary::softplus16(x);
}
CANDOR_DEVICE float soft_cap_of(float x, float cap) {
  return elementary::soft_cap16(x, cap);
}

// Gate and up of a clamped silu: kernels/generic/rows.inl.h.
CANDOR_DEVICE float clamped_silu_of(float gate, float up) {
  constexpr float kLimit = 7.0f;
  constexpr float kSteepness = 1.702f;
  const float g = elementary::min(kLimit, gate);
  const float u = elementary::max(-kLimit, elementary::min(kLimit, up));
  const float y = div_rn(g, add_rn(1.0f, exp_of(mul_rn(g, -kSteepness))));
  return mul_rn(y, add_rn(u, 1.0f));
}

}  // namespace candor::backend::cuda
