#pragma once
// 256 elements of a weight row (or fewer, of 32-blocks) as plain integers: what parse_block() makes of a file's blocks
// before they are packed for the kernels, and the steps that those functions share. Eight bytes are handled at a time:
// packing runs at the speed of memory only if no byte is handled alone.

#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "tensor/quant/block_math.h"

namespace candor::quant {

struct UnitCodes {
  uint8_t codes[kSuperBlock];  // unsigned; Q8_0's is q + 128; rebased ones have changed places in pairs, k with k ^ 1
  uint8_t scales[16];          // super-blocks: sub-scales as in the file (kBytes: int8 bits); rebased: the multipliers
  uint8_t mins[16];            // rebased: bits of the offsets
  f16 d[8];                    // super-blocks: [0]; 32-blocks: one each (an exponent too); rebased: the bits of an f32
  f16 m[8];                    // dmin or m
};

inline uint64_t load_word(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return word;
}
inline void store_word(uint8_t* p, uint64_t word) {
  std::memcpy(p, &word, sizeof word);
}
inline constexpr uint64_t kEachByte = 0x0101010101010101;
inline constexpr uint64_t kEvenBytes = 0x00ff00ff00ff00ff;

// Bits [from, from + n) of each byte, moved to bit `to`.
constexpr uint64_t byte_fields(uint64_t word, int from, int n, int to) {
  return ((word >> from) & (kEachByte * ((1u << n) - 1u))) << to;
}

// dst[i] = n bits from bit `from` of src[i], for n_bytes (a multiple of 8).
inline void take_fields(const uint8_t* src, int from, int n, int n_bytes, uint8_t* dst) {
  for (int i = 0; i < n_bytes; i += 8) store_word(dst + i, byte_fields(load_word(src + i), from, n, 0));
}
// dst[i] |= the same at bit `to`, for 32 bytes.
inline void add_fields(const uint8_t* src, int from, int n, int to, uint8_t* dst) {
  for (int i = 0; i < 32; i += 8) {
    store_word(dst + i, load_word(dst + i) | byte_fields(load_word(src + i), from, n, to));
  }
}

// 32 bytes hold 64 codes, low nibbles first.
inline void take_nibbles_of_256(const uint8_t* qs, uint8_t* codes) {
  for (int g = 0; g < 8; ++g) take_fields(qs + g / 2 * 32, g % 2 * 4, 4, 32, codes + 32 * g);
}
// 16 bytes hold 32 codes, low nibbles first.
inline void take_nibbles_of_32(const uint8_t* qs, uint8_t* codes) {
  take_fields(qs, 0, 4, 16, codes);
  take_fields(qs, 4, 4, 16, codes + 16);
}
// Bit e of qh is bit 4 of code e.
inline void add_fifth_bits(uint32_t qh, uint8_t* codes) {
  for (int e = 0; e < 32; e += 8) {
    const uint64_t one_bit_each = (((qh >> e) & 0xffu) * kEachByte) & 0x8040201008040201;
    const uint64_t top_bits = (one_bit_each + kEachByte * 0x7f) & (kEachByte << 7);
    store_word(codes + e, load_word(codes + e) | (top_bits >> 3));
  }
}

// The eight 6-bit scales and minima of Q4_K and Q5_K.
inline void take_scale_mins(const uint8_t* packed, UnitCodes& dst) {
  for (int g = 0; g < 8; ++g) {
    const ScaleMin entry = unpack_scale_min(packed, g);
    dst.scales[g] = entry.scale;
    dst.mins[g] = entry.min;
  }
}

}  // namespace candor::quant
