#pragma once
// IEEE binary16 and bfloat16 as bit patterns, converted in integer arithmetic: the same bits on every machine and
// whatever the float mode. To bf16 and f16: round to nearest even; NaN stays NaN (quiet).

#include <bit>
#include <cstdint>

namespace candor {

using f16 = uint16_t;
using bf16 = uint16_t;

constexpr float bf16_to_f32(bf16 h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

// Denormal f32 values become signed zero first (DAZ, as vdpbf16ps and the AMX tiles treat them).
constexpr bf16 f32_to_bf16(float f) {
  uint32_t u = std::bit_cast<uint32_t>(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16>((u >> 16) | 0x40u);
  if ((u & 0x7f800000u) == 0) return static_cast<bf16>((u >> 16) & 0x8000u);
  u += 0x7fffu + ((u >> 16) & 1u);
  return static_cast<bf16>(u >> 16);
}

constexpr float f16_to_f32(f16 h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 0x1fu;
  uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const uint32_t shift = static_cast<uint32_t>(std::countl_zero(mantissa)) - 21u;
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | ((113u - shift) << 23) | (mantissa << 13));
}

constexpr f16 f32_to_f16(float f) {
  const uint32_t u = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (u >> 16) & 0x8000u;
  const uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<f16>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<f16>(sign | 0x7c00u);
  if (magnitude < 0x33000000u) return static_cast<f16>(sign);
  const uint32_t exponent = magnitude >> 23;
  if (exponent >= 113u) {
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<f16>(sign | ((rounded - (112u << 23)) >> 13));
  }
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126u - exponent;
  const uint32_t half = 1u << (shift - 1u);
  const uint32_t kept = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1u);
  const uint32_t up = (rest > half || (rest == half && (kept & 1u))) ? 1u : 0u;
  return static_cast<f16>(sign | (kept + up));
}

}  // namespace candor
