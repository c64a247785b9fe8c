#pragma once
// Numbers that words of packed float weights hold (kernels/packed_format.h).

#include "backend/cuda/kernels/unit_planes.h"

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

// Half i % 2 of two.
CANDOR_DEVICE float half_at(uint32_t halves, int i) {
  return half_to_number(static_cast<uint16_t>(i % 2 == 0 ? halves & 0xffffu : halves >> 16));
}

// 2^-8 of the values of two codes E4M3, as halves: of bytes 0 and 1, or 2 and 3.
CANDOR_DEVICE uint32_t e4m3_pair(uint32_t codes, int i) {
  const uint32_t high_bytes = permute_bytes(codes, 0, i % 2 == 0 ? 0x1404 : 0x3424);
  return (high_bytes & 0x80008000u) | ((high_bytes >> 1) & 0x3f803f80u);
}
// Of byte i of four.
CANDOR_DEVICE float e4m3_at(uint32_t codes, int i) {
  return half_at(e4m3_pair(codes, i / 2), i);
}

// The values of two codes E2M1, those of byte i of four, as halves, whose low bytes are zeros.
CANDOR_DEVICE uint32_t e2m1_pair(uint32_t codes, int i) {
  constexpr uint8_t kHighBytes[16] = {0,    0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46,
                                      0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
  const uint32_t bytes = look_up_four(byte_table_of(kHighBytes), i < 2 ? codes : codes >> 16);
  return permute_bytes(bytes, 0, i % 2 == 0 ? 0x1404 : 0x3424);
}

}  // namespace candor::backend::cuda
