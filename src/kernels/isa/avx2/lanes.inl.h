// What AVX2 with FMA and F16C does to 16 lanes, which are two registers: the vocabulary without its products of bytes
// and of 16 bits, in which avx2 and avxvnni differ. Meanings as in isa/portable/vocabulary.inl.h.

struct F32 {
  __m256 a, b;
};
struct I32 {
  __m256i a, b;
};
struct U8 {
  __m256i a, b;
};

CANDOR_INLINE F32 load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
CANDOR_INLINE void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
CANDOR_INLINE F32 splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
CANDOR_INLINE F32 add(F32 x, F32 y) {
  return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}
CANDOR_INLINE F32 sub(F32 x, F32 y) {
  return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}
CANDOR_INLINE F32 mul(F32 x, F32 y) {
  return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}
CANDOR_INLINE F32 div(F32 x, F32 y) {
  return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}
CANDOR_INLINE F32 fma(F32 x, F32 y, F32 z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
CANDOR_INLINE F32 max(F32 x, F32 y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}
CANDOR_INLINE F32 min(F32 x, F32 y) {
  return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}
CANDOR_INLINE F32 zero_if_less(F32 y, F32 x, F32 limit) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_NLT_UQ), y.a),
          _mm256_and_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_NLT_UQ), y.b)};
}
CANDOR_INLINE __m256 keep_eight(__m256 y, __m256i lane, int begin, int end, __m256 other) {
  const __m256i from_begin = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(begin - 1));
  const __m256i below_end = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
  return _mm256_blendv_ps(other, y, _mm256_castsi256_ps(_mm256_and_si256(from_begin, below_end)));
}
CANDOR_INLINE F32 keep_lanes(F32 y, int begin, int end, F32 other) {
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  return {keep_eight(y.a, low, begin, end, other.a), keep_eight(y.b, high, begin, end, other.b)};
}
CANDOR_INLINE F32 fma_scalar(F32 w, const float* x, F32 c) {
  const __m256 s = _mm256_broadcast_ss(x);
  return {_mm256_fmadd_ps(s, w.a, c.a), _mm256_fmadd_ps(s, w.b, c.b)};
}
CANDOR_INLINE float fma1(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CANDOR_INLINE float sqrt1(float a) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}

CANDOR_INLINE __m256 round_eight_bf16(__m256 x) {
  const __m256i u = _mm256_castps_si256(x);
  const __m256i magnitude = _mm256_and_si256(u, _mm256_set1_epi32(0x7fffffff));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i is_nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
  const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x00800000), magnitude);
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x00400000));
  const __m256i sign = _mm256_and_si256(u, _mm256_set1_epi32(static_cast<int>(0x80000000u)));
  __m256i y = _mm256_blendv_epi8(rounded, quiet, is_nan);
  y = _mm256_blendv_epi8(y, sign, is_small);
  return _mm256_castsi256_ps(_mm256_and_si256(y, _mm256_set1_epi32(static_cast<int>(0xffff0000u))));
}
CANDOR_INLINE F32 round_bf16(F32 x) {
  return {round_eight_bf16(x.a), round_eight_bf16(x.b)};
}
CANDOR_INLINE void store_halves(uint16_t* p, F32 x) {
  const __m256i low = _mm256_srli_epi32(_mm256_castps_si256(x.a), 16);
  const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(x.b), 16);
  const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), both);
}
CANDOR_INLINE F32 load_f16(const uint8_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
}

CANDOR_INLINE __m256i load_256(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
CANDOR_INLINE void store_256(void* p, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), x);
}
// codes: in the upper byte of each half.
CANDOR_INLINE F32 widen_e4m3(__m256i codes) {
  const __m256i bits = _mm256_set1_epi16(static_cast<short>(0xbf80));
  const __m256i halves = _mm256_and_si256(_mm256_srai_epi16(codes, 1), bits);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}
CANDOR_INLINE F32 even_e4m3(const uint8_t* p) {
  return widen_e4m3(_mm256_slli_epi16(load_256(p), 8));
}
CANDOR_INLINE F32 odd_e4m3(const uint8_t* p) {
  return widen_e4m3(load_256(p));
}
CANDOR_INLINE F32 scales_e4m3(const uint8_t* p) {
  const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return widen_e4m3(_mm256_slli_epi16(codes, 8));
}
// codes: in the low 4 bits of each word; bits above them are zeros.
CANDOR_INLINE __m256 e2m1(__m256i codes) {
  const __m256 magnitude = _mm256_permutevar8x32_ps(_mm256_loadu_ps(quant::kE2M1Values.data()), codes);
  const __m256i sign = _mm256_slli_epi32(_mm256_and_si256(codes, _mm256_set1_epi32(8)), 28);
  return _mm256_or_ps(magnitude, _mm256_castsi256_ps(sign));
}
CANDOR_INLINE __m256i bytes_as_words(const uint8_t* p) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
CANDOR_INLINE F32 low_e2m1(const uint8_t* p) {
  return {e2m1(bytes_as_words(p)), e2m1(bytes_as_words(p + 8))};
}
CANDOR_INLINE F32 high_e2m1(const uint8_t* p) {
  return {e2m1(_mm256_srli_epi32(bytes_as_words(p), 4)), e2m1(_mm256_srli_epi32(bytes_as_words(p + 8), 4))};
}

CANDOR_INLINE I32 load_i(const int32_t* p) {
  return {load_256(p), load_256(p + 8)};
}
CANDOR_INLINE void store_i(int32_t* p, I32 x) {
  store_256(p, x.a);
  store_256(p + 8, x.b);
}
CANDOR_INLINE void transpose_16(I32* v) {
  int32_t from[16][16];
  int32_t to[16][16];
  for (int i = 0; i < 16; ++i) store_i(from[i], v[i]);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) to[j][i] = from[i][j];
  }
  for (int i = 0; i < 16; ++i) v[i] = load_i(to[i]);
}
CANDOR_INLINE void store_interleaved_eight(int32_t* dst, __m256i v0, __m256i v1, __m256i v2, __m256i v3) {
  const __m256i low01 = _mm256_unpacklo_epi32(v0, v1);
  const __m256i low23 = _mm256_unpacklo_epi32(v2, v3);
  const __m256i high01 = _mm256_unpackhi_epi32(v0, v1);
  const __m256i high23 = _mm256_unpackhi_epi32(v2, v3);
  const __m256i lanes04 = _mm256_unpacklo_epi64(low01, low23);
  const __m256i lanes15 = _mm256_unpackhi_epi64(low01, low23);
  const __m256i lanes26 = _mm256_unpacklo_epi64(high01, high23);
  const __m256i lanes37 = _mm256_unpackhi_epi64(high01, high23);
  store_256(dst, _mm256_permute2x128_si256(lanes04, lanes15, 0x20));
  store_256(dst + 8, _mm256_permute2x128_si256(lanes26, lanes37, 0x20));
  store_256(dst + 16, _mm256_permute2x128_si256(lanes04, lanes15, 0x31));
  store_256(dst + 24, _mm256_permute2x128_si256(lanes26, lanes37, 0x31));
}
CANDOR_INLINE void store_interleaved(int32_t* dst, const I32* v) {
  store_interleaved_eight(dst, v[0].a, v[1].a, v[2].a, v[3].a);
  store_interleaved_eight(dst + 32, v[0].b, v[1].b, v[2].b, v[3].b);
}
CANDOR_INLINE I32 splat_i(int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
CANDOR_INLINE I32 add_i(I32 x, I32 y) {
  return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
CANDOR_INLINE I32 mul_i(I32 x, I32 y) {
  return {_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)};
}
CANDOR_INLINE I32 and_i(I32 x, I32 y) {
  return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
CANDOR_INLINE I32 or_i(I32 x, I32 y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
CANDOR_INLINE I32 max_i(I32 x, I32 y) {
  return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)};
}
template <int n>
CANDOR_INLINE I32 shl_i(I32 x) {
  return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)};
}
template <int n>
CANDOR_INLINE I32 shr_i(I32 x) {
  return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)};
}
CANDOR_INLINE F32 to_f32(I32 x) {
  return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}
CANDOR_INLINE F32 bits_to_f32(I32 x) {
  return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
CANDOR_INLINE I32 f32_to_bits(F32 x) {
  return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
CANDOR_INLINE I32 round_i(F32 x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
CANDOR_INLINE __m128i load_128(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
CANDOR_INLINE __m128i load_64(const uint8_t* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
#include "kernels/generic/look_up.inl.h"
CANDOR_INLINE I32 widen_u8(const uint8_t* p) {
  return {_mm256_cvtepu8_epi32(load_64(p)), _mm256_cvtepu8_epi32(load_64(p + 8))};
}
CANDOR_INLINE I32 widen_u8_pairs(const uint8_t* p) {
  return {_mm256_cvtepu8_epi16(load_128(p)), _mm256_cvtepu8_epi16(load_128(p + 16))};
}
CANDOR_INLINE I32 widen_i8_pairs(const uint8_t* p) {
  return {_mm256_cvtepi8_epi16(load_128(p)), _mm256_cvtepi8_epi16(load_128(p + 16))};
}
CANDOR_INLINE I32 widen_i8(const uint8_t* p) {
  return {_mm256_cvtepi8_epi32(load_64(p)), _mm256_cvtepi8_epi32(load_64(p + 8))};
}
CANDOR_INLINE void store_i8(int8_t* p, I32 x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
CANDOR_INLINE void store_i16(int32_t* p, I32 x) {
  store_256(p, _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8));
}
CANDOR_INLINE int32_t sum_lanes(I32 x) {
  const __m256i eight = _mm256_add_epi32(x.a, x.b);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
CANDOR_INLINE int32_t max_lanes(I32 x) {
  const __m256i eight = _mm256_max_epi32(x.a, x.b);
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
}
CANDOR_INLINE F32 even_bf16(I32 pairs) {
  return bits_to_f32(shl_i<16>(pairs));
}
CANDOR_INLINE F32 odd_bf16(I32 pairs) {
  return bits_to_f32(and_i(pairs, splat_i(static_cast<int32_t>(0xffff0000u))));
}

CANDOR_INLINE float sum_tree(F32 x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
CANDOR_INLINE float max_tree(F32 x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// As an instruction: gcc 12 takes what it broadcasts through general registers.
CANDOR_INLINE __m256i broadcast_four(const int8_t* x) {
  struct Four {
    int8_t x[4];
  };
  __m256i all;
  __asm__("vpbroadcastd %1, %0" : "=x"(all) : "m"(*reinterpret_cast<const Four*>(x)));
  return all;
}

CANDOR_INLINE __m256i broadcast_word(const int32_t* x) {
  __m256i all;
  __asm__("vpbroadcastd %1, %0" : "=x"(all) : "m"(*x));
  return all;
}

CANDOR_INLINE U8 load_u(const uint8_t* p) {
  return {load_256(p), load_256(p + 32)};
}
CANDOR_INLINE void store_u(uint8_t* p, U8 x) {
  store_256(p, x.a);
  store_256(p + 32, x.b);
}
CANDOR_INLINE U8 as_bytes(I32 x) {
  return {x.a, x.b};
}
CANDOR_INLINE U8 or_u(U8 x, U8 y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
template <int n>
CANDOR_INLINE U8 add_u(U8 x) {
  const __m256i bytes = _mm256_set1_epi8(static_cast<char>(n));
  return {_mm256_add_epi8(x.a, bytes), _mm256_add_epi8(x.b, bytes)};
}
CANDOR_INLINE U8 flip_sign_u(U8 x) {
  const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
  return {_mm256_xor_si256(x.a, top), _mm256_xor_si256(x.b, top)};
}
CANDOR_INLINE U8 abs_u(U8 x) {
  return {_mm256_abs_epi8(x.a), _mm256_abs_epi8(x.b)};
}
template <int from, int to>
CANDOR_INLINE U8 move_bits(U8 x) {
  if constexpr (from > to) return {_mm256_srli_epi16(x.a, from - to), _mm256_srli_epi16(x.b, from - to)};
  if constexpr (from < to) return {_mm256_slli_epi16(x.a, to - from), _mm256_slli_epi16(x.b, to - from)};
  return x;
}
template <int mask>
CANDOR_INLINE U8 mask_u(U8 x) {
  if constexpr (mask == 0xff) return x;
  const __m256i bits = _mm256_set1_epi8(static_cast<char>(mask));
  return {_mm256_and_si256(x.a, bits), _mm256_and_si256(x.b, bits)};
}
template <int n>
CANDOR_INLINE U8 merge_low(U8 low, U8 high) {
  const __m256i mask = _mm256_set1_epi8((1 << n) - 1);
  return {_mm256_or_si256(_mm256_and_si256(mask, low.a), _mm256_andnot_si256(mask, high.a)),
          _mm256_or_si256(_mm256_and_si256(mask, low.b), _mm256_andnot_si256(mask, high.b))};
}
CANDOR_INLINE U8 lookup(const uint8_t* table, U8 x) {
  const __m256i entries = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(entries, x.a), _mm256_shuffle_epi8(entries, x.b)};
}
// q << 4 times a, or q times 16 a, has its bits in the upper byte of 16; q << 8 times 16 a, or q << 12 times a, in the
// upper 16 of 32.
template <bool is_high>
CANDOR_INLINE __m256i rebase_half(__m256i codes, __m256i a, __m256i b) {
  const __m256i odd = _mm256_and_si256(codes, _mm256_set1_epi16(is_high ? 0x00f0 : 0x000f));
  const __m256i even = _mm256_and_si256(codes, _mm256_set1_epi16(static_cast<short>(is_high ? 0xf000 : 0x0f00)));
  const __m256i mask = _mm256_set1_epi16(static_cast<short>(0xff00));
  const __m256i upper = _mm256_and_si256(_mm256_mullo_epi16(odd, a), mask);
  return _mm256_add_epi8(_mm256_or_si256(upper, _mm256_mulhi_epu16(even, a)), b);
}
template <bool is_high>
CANDOR_INLINE U8 rebase(U8 codes, I32 a, I32 b) {
  return {rebase_half<is_high>(codes.a, a.a, b.a), rebase_half<is_high>(codes.b, a.b, b.b)};
}
CANDOR_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
CANDOR_INLINE void prefetch_far(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}
