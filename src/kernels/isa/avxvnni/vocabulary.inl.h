// The vector operations that all kernels are written in (16 lanes), on AVX2 with AVX-VNNI: the lanes of avx2, and
// products that add up in 32 bits. Meanings as in isa/portable/vocabulary.inl.h. Each file says before it
//   kHasVexDots: false where the same products are AVX-512's on its narrow registers (VL), with which tests run the
//   bodies kDotRows: of a tile: 4 where sums of a scale for each 16 or 32 k stay in registers too, 6 where dots are
//   long

constexpr bool kDotIsSigned = false;
constexpr bool kDotHasHalves = false;
constexpr int kDotPanels = 1;
constexpr int kTileRows = kDotRows;
constexpr int kTallRows = kTileRows;  // of one panel
constexpr int kMostDots = kTallRows;  // rows of a tile whose dots are held together
constexpr int kTileRowsF32 = 6;       // 12 registers of sums
constexpr int kTileRowsBf16 = 3;      // two chains for each of 6
constexpr int kQueryTile = 3;         // queries of attention that a micro-kernel holds, two chains each
constexpr int kCodeTile = 4;          // the same on pages of codes, one sum each

#include "kernels/isa/avx2/lanes.inl.h"

// acc += products of pairs of 16 bits; of four unsigned bytes of w with four signed ones of x.
CANDOR_INLINE __m256i madd16_eight(__m256i acc, __m256i x, __m256i scale) {
  if constexpr (kHasVexDots) {
    __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(acc) : "x"(x), "x"(scale));
  } else {
    __asm__("vpdpwssd %2, %1, %0" : "+x"(acc) : "x"(x), "x"(scale));
  }
  return acc;
}
CANDOR_INLINE __m256i dot4_eight(__m256i acc, __m256i w, __m256i x) {
  if constexpr (kHasVexDots) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(w), "x"(x));
  } else {
    __asm__("vpdpbusd %2, %1, %0" : "+x"(acc) : "x"(w), "x"(x));
  }
  return acc;
}

CANDOR_INLINE I32 madd16(I32 acc, I32 x, I32 scale) {
  return {madd16_eight(acc.a, x.a, scale.a), madd16_eight(acc.b, x.b, scale.b)};
}
CANDOR_INLINE I32 dot2(I32 acc, I32 w, int32_t x) {
  return madd16(acc, w, splat_i(x));
}
CANDOR_INLINE I32 dot2_scalar(I32 acc, I32 w, const int32_t* x) {
  const __m256i all = broadcast_word(x);
  return madd16(acc, w, {all, all});
}
template <bool is_wide, bool in_halves = false, int = kDotPanels>
CANDOR_INLINE I32 dot4(I32 acc, U8 w, const int8_t* x) {
  const __m256i all = broadcast_four(x);
  return {dot4_eight(acc.a, w.a, all), dot4_eight(acc.b, w.b, all)};
}
template <bool is_wide>
CANDOR_INLINE I32 dot4_in_halves(U8 w, const int8_t* x);
