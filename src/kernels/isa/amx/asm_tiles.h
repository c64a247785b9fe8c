#pragma once
// The tile registers of this thread, by assembly of our own: gcc 12's intrinsics do not tell the compiler what memory
// they read, and at -O3 stores to a tile's buffer were dropped or moved past its load. Every statement here is volatile
// with a "memory" clobber. The object owns the tile state of its thread from construction to destruction; one at a
// time. REQUIRES: amx_table() is not null (the processor has tiles and the system granted them).

#include <cstddef>

#include "kernels/isa/amx/tile_config.h"

namespace candor::kernels {

class AsmTiles {
 public:
  explicit AsmTiles(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config) : "memory"); }
  ~AsmTiles() { __asm__ volatile("tilerelease" : : : "memory"); }
  AsmTiles(const AsmTiles&) = delete;
  AsmTiles& operator=(const AsmTiles&) = delete;

  template <int t>
  void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(t) : "memory");
  }
  // Rows stride_bytes apart.
  template <int t>
  void load(const void* src, size_t stride_bytes) {
    __asm__ volatile("tileloadd (%1,%2,1), %%tmm%c0" : : "i"(t), "r"(src), "r"(stride_bytes) : "memory");
  }
  template <int t>
  void store(void* dst, size_t stride_bytes) {
    __asm__ volatile("tilestored %%tmm%c0, (%1,%2,1)" : : "i"(t), "r"(dst), "r"(stride_bytes) : "memory");
  }

  // c += a * b over groups of four int8, a signed; b signed or unsigned.
  template <int c, int a, int b>
  void dot_signed() {
    __asm__ volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b) : "memory");
  }
  template <int c, int a, int b>
  void dot_unsigned() {
    __asm__ volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b) : "memory");
  }
  // c += a * b over pairs of bf16, in the order of docs/numerics.md.
  template <int c, int a, int b>
  void dot_bf16() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(c), "i"(a), "i"(b) : "memory");
  }
};

}  // namespace candor::kernels
