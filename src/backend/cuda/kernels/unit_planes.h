#pragma once
// Codes of a packed panel (kernels/packed_format.h) as a warp brings them to mma_s8. Of each 32 k a lane has eight, 8 t
// to 8 t + 7, of two outputs, 2 g and 2 g + 1, where g = lane() / 4 and t = lane() % 4: rows g and g + 8 of mma_s8 are
// these outputs, and its k are in this order. So the two words of an output, and of its neighbour, lie together.

#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {

struct alignas(8) Uint2 {
  uint32_t x, y;
};
// REQUIRES: addresses that are multiples of the size.
CANDOR_DEVICE Uint2 load8(const void* src) {
  return *static_cast<const Uint2*>(src);
}
CANDOR_DEVICE uint32_t load4(const void* src) {
  return *static_cast<const uint32_t*>(src);
}
CANDOR_DEVICE uint32_t load2(const void* src) {
  return *static_cast<const uint16_t*>(src);
}

CANDOR_DEVICE uint32_t lane_group() {
  return lane() / 4;
}
CANDOR_DEVICE uint32_t lane_quarter() {
  return lane() % 4;
}

// Of n_blocks times 32 k, one plane of `bits` bits.
template <int bits, int n_blocks>
struct PlaneWords {
  static constexpr int kWords = bits == 8 ? 2 : 1;  // of 32 k

  Uint2 words[n_blocks * kWords];  // of the two outputs

  // plane: where the first of the blocks begins. n: blocks that are there.
  CANDOR_DEVICE void load(const uint8_t* plane, int n = n_blocks) {
    plane += 8 * lane_group();
    CANDOR_UNROLL
    for (int b = 0; b < n_blocks; ++b) {
      if (b >= n) return;
      const uint32_t t = lane_quarter();
      if constexpr (bits == 8) {
        words[2 * b] = load8(plane + 64 * (8 * static_cast<uint32_t>(b) + 2 * t));
        words[2 * b + 1] = load8(plane + 64 * (8 * static_cast<uint32_t>(b) + 2 * t + 1));
      } else {
        const uint32_t part = bits == 4 ? t : bits == 2 ? t / 2 : 0;
        words[b] = load8(plane + 64 * (bits * static_cast<uint32_t>(b) + part));
      }
    }
  }

  // The word of output 0 or 1 as it lies.
  CANDOR_DEVICE uint32_t word(int i, int output) const { return output == 0 ? words[i].x : words[i].y; }

  // The fields of four k, 8 t + 4 half and on, in the low bits of four bytes.
  CANDOR_DEVICE uint32_t fields(int b, int half, int output) const {
    constexpr uint32_t kMask = 0x01010101u * ((1u << bits) - 1u);
    if constexpr (bits == 8) return word(2 * b + half, output);
    const uint32_t t = lane_quarter();
    const auto h = static_cast<uint32_t>(half);
    const uint32_t at = bits == 4 ? 4 * h : bits == 2 ? 4 * (t % 2) + 2 * h : 2 * t + h;
    return (word(b, output) >> at) & kMask;
  }
};

template <int n_blocks>
struct PlaneWords<0, n_blocks> {
  CANDOR_DEVICE void load(const uint8_t*, int = n_blocks) {}
  CANDOR_DEVICE uint32_t fields(int, int, int) const { return 0; }
};

// Sixteen signed bytes that codes of four bits name.
struct ByteTable {
  uint32_t words[4];
};
template <class Values>
constexpr ByteTable byte_table_of(const Values& values) {
  ByteTable table{};
  for (uint32_t i = 0; i < 16; ++i) table.words[i / 4] |= uint32_t{static_cast<uint8_t>(values[i])} << (8 * (i % 4));
  return table;
}
// Of the four codes in the low half of `codes`, the lowest first.
CANDOR_DEVICE uint32_t look_up_four(const ByteTable& table, uint32_t codes) {
  const uint32_t low = permute_bytes(table.words[0], table.words[1], codes & 0x7777u);
  const uint32_t high = permute_bytes(table.words[2], table.words[3], codes & 0x7777u);
  return permute_bytes(low, high, 0x3210u | ((codes & 0x8888u) >> 1));
}

// The same of four codes in four bytes.
CANDOR_DEVICE uint32_t look_up_bytes(const ByteTable& table, uint32_t codes) {
  const uint32_t pairs = codes | (codes >> 4);
  return look_up_four(table, (pairs & 0xffu) | ((pairs >> 8) & 0xff00u));
}

// Each byte less n. REQUIRES: bytes below 128, n at most 128.
template <uint32_t n>
CANDOR_DEVICE uint32_t subtract_from_bytes(uint32_t bytes) {
  if constexpr (n == 0) return bytes;
  return ((bytes | 0x80808080u) - n * 0x01010101u) ^ 0x80808080u;
}

}  // namespace candor::backend::cuda
