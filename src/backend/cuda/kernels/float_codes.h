#pragma once
// Numbers that words of packed float weights hold (kernels/packed_format.h).

#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {

// A pair of bf16s.
CANDOR_DEVICE float even_of(uint32_t pair) {
  return float_of(pair << 16);
}
CANDOR_DEVICE float odd_of(uint32_t pair) {
  return float_of(pair & 0xffff0000u);
}

CANDOR_DEVICE uint32_t element(const Uint4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// 2^-8 of the value of a code E4M3, the low byte.
CANDOR_DEVICE float e4m3_of(uint32_t code) {
  return half_to_number(static_cast<uint16_t>((code & 0x80u) << 8 | (code & 0x7fu) << 7));
}
// 2^-14 of the value of a code E2M1, the low four bits, and 2^6 of the value of its scale.
CANDOR_DEVICE float e2m1_of(uint32_t code) {
  return half_to_number(static_cast<uint16_t>((code & 8u) << 12 | (code & 7u) << 9));
}
CANDOR_DEVICE float e2m1_scale_of(uint32_t code) {
  return mul_rn(e4m3_of(code), 0x1p14f);
}

}  // namespace candor::backend::cuda
