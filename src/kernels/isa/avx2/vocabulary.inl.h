// The vector operations that all kernels are written in (16 lanes), on AVX2 with FMA and F16C. Meanings as in
// isa/portable/vocabulary.inl.h.

constexpr bool kDotIsSigned = true;   // vpmaddubsw would saturate on weights above 128: those come signed
constexpr bool kDotHasHalves = true;  // what vpmaddubsw gives is added in 16 bits
constexpr int kDotPanels = 1;
constexpr int kTileRows = 4;          // 8 registers of dots of 16
constexpr int kTallRows = kTileRows;  // of one panel
constexpr int kMostDots = kTallRows;  // rows of a tile whose dots are held together
constexpr int kTileRowsF32 = 6;       // 12 registers of sums
constexpr int kTileRowsBf16 = 3;      // two chains for each of 6
constexpr int kQueryTile = 3;         // queries of attention that a micro-kernel holds, two chains each
constexpr int kCodeTile = 4;          // the same on pages of codes, one sum each

#include "kernels/isa/avx2/lanes.inl.h"

// As instructions: gcc 12 puts the sums of a chain off, holding its products in memory until then.
CANDOR_INLINE __m256i add_32(__m256i acc, __m256i x) {
  __asm__("vpaddd %1, %0, %0" : "+x"(acc) : "x"(x));
  return acc;
}
CANDOR_INLINE __m256i add_16(__m256i acc, __m256i x) {
  __asm__("vpaddw %1, %0, %0" : "+x"(acc) : "x"(x));
  return acc;
}
CANDOR_INLINE I32 madd16(I32 acc, I32 x, I32 scale) {
  return {add_32(acc.a, _mm256_madd_epi16(x.a, scale.a)), add_32(acc.b, _mm256_madd_epi16(x.b, scale.b))};
}
CANDOR_INLINE I32 dot2(I32 acc, I32 w, int32_t x) {
  return madd16(acc, w, splat_i(x));
}
CANDOR_INLINE I32 dot2_scalar(I32 acc, I32 w, const int32_t* x) {
  const __m256i all = broadcast_word(x);
  return madd16(acc, w, {all, all});
}
// is_wide: w is signed and x is turned by its signs; else w is unsigned, at most 128, so that pairs fit 16 bits.
template <bool is_wide>
CANDOR_INLINE __m256i add_pairs_of(__m256i w, __m256i x) {
  return is_wide ? _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)) : _mm256_maddubs_epi16(w, x);
}
template <bool is_wide, bool in_halves>
CANDOR_INLINE __m256i dot4_eight(__m256i acc, __m256i w, __m256i x) {
  const __m256i pairs = add_pairs_of<is_wide>(w, x);
  if constexpr (in_halves) return add_16(acc, pairs);
  return add_32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <bool is_wide, bool in_halves = false, int = kDotPanels>
CANDOR_INLINE I32 dot4(I32 acc, U8 w, const int8_t* x) {
  const __m256i all = broadcast_four(x);
  return {dot4_eight<is_wide, in_halves>(acc.a, w.a, all), dot4_eight<is_wide, in_halves>(acc.b, w.b, all)};
}
template <bool is_wide>
CANDOR_INLINE I32 dot4_in_halves(U8 w, const int8_t* x) {
  const __m256i all = broadcast_four(x);
  return {add_pairs_of<is_wide>(w.a, all), add_pairs_of<is_wide>(w.b, all)};
}
