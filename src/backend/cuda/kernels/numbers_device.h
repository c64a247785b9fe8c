#pragma once
// The words of kernels (language.h) that compute, on a GPU, as emulation/numbers_host.h has them on a host. Of
// language_device.h, which defines CANDOR_DEVICE.

#include <cstdint>

namespace candor::backend::cuda {

CANDOR_DEVICE float fma_rn(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}
CANDOR_DEVICE float mul_rn(float a, float b) {
  return __fmul_rn(a, b);
}
CANDOR_DEVICE float add_rn(float a, float b) {
  return __fadd_rn(a, b);
}
CANDOR_DEVICE float sub_rn(float a, float b) {
  return __fsub_rn(a, b);
}
CANDOR_DEVICE float div_rn(float a, float b) {
  return __fdiv_rn(a, b);
}
CANDOR_DEVICE float sqrt_rn(float a) {
  return __fsqrt_rn(a);
}

CANDOR_DEVICE uint32_t bits_of(float a) {
  return __float_as_uint(a);
}
CANDOR_DEVICE float float_of(uint32_t bits) {
  return __uint_as_float(bits);
}
// To the nearest, ties to even; what does not fit is the nearest that does, NaN is 0.
CANDOR_DEVICE int32_t to_int_rn(float a) {
  return __float2int_rn(a);
}
// The same of numbers from 0 to 2^52.
CANDOR_DEVICE uint64_t to_uint64_rn(float a) {
  return __float2ull_rn(a);
}
CANDOR_DEVICE float to_float_rn(int32_t a) {
  return __int2float_rn(a);
}

// The bits of base/half.h: what it does by cases is chosen from here, so that a warp does not part.
CANDOR_DEVICE float bf16_to_float(uint16_t h) {
  return __uint_as_float(static_cast<uint32_t>(h) << 16);
}
CANDOR_DEVICE uint16_t float_to_bf16(float a) {
  const uint32_t u = __float_as_uint(a);
  const uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  const uint32_t number = (u & 0x7f800000u) == 0 ? u & 0x80000000u : rounded;
  return static_cast<uint16_t>(((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : number) >> 16);
}
CANDOR_DEVICE uint32_t bf16_pair(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
// A NaN may have any bits.
CANDOR_DEVICE float half_to_number(uint16_t h) {
  float a;
  asm("cvt.f32.f16 %0, %1;" : "=f"(a) : "h"(h));
  return a;
}
CANDOR_DEVICE float half_to_float(uint16_t h) {
  const float a = half_to_number(h);
  const uint32_t special = (static_cast<uint32_t>(h & 0x8000u) << 16) | 0x7f800000u | ((h & 0x3ffu) << 13);
  return (h & 0x7c00u) == 0x7c00u ? __uint_as_float(special) : a;
}
CANDOR_DEVICE uint16_t float_to_half(float a) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(a));
  const uint32_t u = __float_as_uint(a);
  return (u & 0x7fffffffu) > 0x7f800000u ? static_cast<uint16_t>((u >> 16 & 0x8000u) | 0x7e00u) : h;
}

// c + the sum of four products of signed bytes.
CANDOR_DEVICE int32_t dot4(uint32_t a, uint32_t b, int32_t c) {
  return __dp4a(static_cast<int>(a), static_cast<int>(b), c);
}

// c + the sum of two products: of a's 16 bits, signed, and b's two low (high) bytes, signed.
CANDOR_DEVICE int32_t dot2_low(uint32_t a, uint32_t b, int32_t c) {
  return __dp2a_lo(static_cast<int>(a), static_cast<int>(b), c);
}
CANDOR_DEVICE int32_t dot2_high(uint32_t a, uint32_t b, int32_t c) {
  return __dp2a_hi(static_cast<int>(a), static_cast<int>(b), c);
}

// Byte i of the result is byte number (selectors >> 4 i) % 8 of b, a: a's are 0 to 3.
CANDOR_DEVICE uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selectors) {
  return __byte_perm(a, b, selectors);
}

}  // namespace candor::backend::cuda
