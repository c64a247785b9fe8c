#pragma once
// The words of kernels/language.h that compute, on a host whose float mode is that of platform/float_mode.h.

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/half.h"

namespace candor::backend::cuda {

inline float fma_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float mul_rn(float a, float b) {
  return a * b;
}
inline float add_rn(float a, float b) {
  return a + b;
}
inline float sub_rn(float a, float b) {
  return a - b;
}
inline float div_rn(float a, float b) {
  return a / b;
}
inline float sqrt_rn(float a) {
  return std::sqrt(a);
}
inline int32_t to_int_rn(float a) {
  if (!(a >= -2147483648.0f)) return a < 0.0f ? INT32_MIN : 0;
  return a < 2147483648.0f ? static_cast<int32_t>(std::lrint(a)) : INT32_MAX;
}
inline uint64_t to_uint64_rn(float a) {
  constexpr double kInteger = 0x1p52;  // a double of this size holds no fraction
  return std::bit_cast<uint64_t>(static_cast<double>(a) + kInteger) - std::bit_cast<uint64_t>(kInteger);
}
inline float to_float_rn(int32_t a) {
  return static_cast<float>(a);
}
inline uint32_t bits_of(float a) {
  return std::bit_cast<uint32_t>(a);
}
inline float float_of(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
inline float half_to_float(uint16_t h) {
  return f16_to_f32(h);
}
inline float half_to_number(uint16_t h) {
  return f16_to_f32(h);
}
inline uint16_t float_to_half(float f) {
  return f32_to_f16(f);
}
inline float bf16_to_float(uint16_t h) {
  return bf16_to_f32(h);
}
inline uint16_t float_to_bf16(float f) {
  return f32_to_bf16(f);
}

inline int32_t dot4(uint32_t a, uint32_t b, int32_t c) {
  int32_t sum = 0;
  for (uint32_t i = 0; i < 32; i += 8)
    sum += int32_t{static_cast<int8_t>(a >> i)} * int32_t{static_cast<int8_t>(b >> i)};
  return static_cast<int32_t>(static_cast<uint32_t>(c) + static_cast<uint32_t>(sum));
}

inline int32_t dot2_low(uint32_t a, uint32_t b, int32_t c) {
  return c + int32_t{static_cast<int16_t>(a)} * int32_t{static_cast<int8_t>(b)} +
         int32_t{static_cast<int16_t>(a >> 16)} * int32_t{static_cast<int8_t>(b >> 8)};
}
inline int32_t dot2_high(uint32_t a, uint32_t b, int32_t c) {
  return dot2_low(a, b >> 16, c);
}

inline uint32_t bf16_pair(float low, float high) {
  return f32_to_bf16(low) | static_cast<uint32_t>(f32_to_bf16(high)) << 16;
}

inline uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<uint32_t>(bytes >> (8 * ((selectors >> (4 * i)) & 7u)));
    result |= (byte & 0xffu) << (8 * i);
  }
  return result;
}

}  // namespace candor::backend::cuda
