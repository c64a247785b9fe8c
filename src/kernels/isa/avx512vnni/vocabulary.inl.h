// The vector operations that all kernels are written in (16 lanes), on AVX-512 F, BW, DQ, VL with VNNI. Meanings as in
// isa/portable/vocabulary.inl.h.

constexpr bool kDotIsSigned = false;
constexpr bool kDotHasHalves = false;
constexpr int kDotPanels = 2;
constexpr int kTileRows = 6;      // of two panels: 12 dots + 12 sums + 2 of weights + scale, activation of 32 registers
constexpr int kTallRows = 16;     // of one: 8 dots + 16 sums + 4 of weights + scale, mask
constexpr int kMostDots = 14;     // 14 dots + 14 sums + weights + scale, mask
constexpr int kTileRowsF32 = 12;  // 24 sums + 2 of weights + an activation
constexpr int kTileRowsBf16 = 6;  // two chains for each of 12
constexpr int kQueryTile = 8;     // queries of attention that a micro-kernel holds, two chains each
constexpr int kCodeTile = 8;      // the same on pages of codes, one sum each

using F32 = __m512;
using I32 = __m512i;
struct U8 {
  __m512i v;
};

CANDOR_INLINE F32 load(const float* p) {
  return _mm512_loadu_ps(p);
}
CANDOR_INLINE void store(float* p, F32 a) {
  _mm512_storeu_ps(p, a);
}
CANDOR_INLINE F32 splat(float x) {
  return _mm512_set1_ps(x);
}
CANDOR_INLINE F32 add(F32 a, F32 b) {
  return _mm512_add_ps(a, b);
}
CANDOR_INLINE F32 sub(F32 a, F32 b) {
  return _mm512_sub_ps(a, b);
}
CANDOR_INLINE F32 mul(F32 a, F32 b) {
  return _mm512_mul_ps(a, b);
}
CANDOR_INLINE F32 div(F32 a, F32 b) {
  return _mm512_div_ps(a, b);
}
CANDOR_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return _mm512_fmadd_ps(a, b, c);
}
CANDOR_INLINE F32 max(F32 a, F32 b) {
  return _mm512_max_ps(a, b);
}
CANDOR_INLINE F32 min(F32 a, F32 b) {
  return _mm512_min_ps(a, b);
}
CANDOR_INLINE F32 zero_if_less(F32 y, F32 x, F32 limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, limit, _CMP_NLT_UQ), y);
}
CANDOR_INLINE F32 keep_lanes(F32 y, int begin, int end, F32 other) {
  const uint32_t below_end = end >= 16 ? 0xffffu : (1u << (end < 0 ? 0 : end)) - 1u;
  const uint32_t below_begin = begin >= 16 ? 0xffffu : (1u << (begin < 0 ? 0 : begin)) - 1u;
  return _mm512_mask_blend_ps(static_cast<__mmask16>(below_end & ~below_begin), other, y);
}
CANDOR_INLINE F32 fma_scalar(F32 w, const float* x, F32 c) {
  return _mm512_fmadd_ps(_mm512_set1_ps(*x), w, c);
}
CANDOR_INLINE float fma1(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CANDOR_INLINE float sqrt1(float a) {
  return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
}

CANDOR_INLINE F32 round_bf16(F32 a) {
  const __m512i u = _mm512_castps_si512(a);
  const __m512i top = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
  const __m512i magnitude = _mm512_and_si512(u, _mm512_set1_epi32(0x7fffffff));
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i y = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 is_nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
  const __mmask16 is_small = _mm512_cmplt_epi32_mask(magnitude, _mm512_set1_epi32(0x00800000));
  y = _mm512_mask_or_epi32(y, is_nan, u, _mm512_set1_epi32(0x00400000));
  y = _mm512_mask_and_epi32(y, is_small, u, _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm512_castsi512_ps(_mm512_and_si512(y, top));
}
CANDOR_INLINE void store_halves(uint16_t* p, F32 a) {
  const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(a), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(bits));
}
CANDOR_INLINE F32 load_f16(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// codes: in the upper byte of each half.
CANDOR_INLINE F32 widen_e4m3(__m256i codes) {
  const __m256i bits = _mm256_set1_epi16(static_cast<short>(0xbf80));
  return _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(codes, 1), bits));
}
CANDOR_INLINE F32 even_e4m3(const uint8_t* p) {
  return widen_e4m3(_mm256_slli_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), 8));
}
CANDOR_INLINE F32 odd_e4m3(const uint8_t* p) {
  return widen_e4m3(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
CANDOR_INLINE F32 scales_e4m3(const uint8_t* p) {
  const __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return widen_e4m3(_mm256_slli_epi16(codes, 8));
}
CANDOR_INLINE F32 e2m1(__m512i codes) {
  return _mm512_permutexvar_ps(codes, _mm512_loadu_ps(quant::kE2M1Values.data()));
}
CANDOR_INLINE __m512i bytes_as_words(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
CANDOR_INLINE F32 low_e2m1(const uint8_t* p) {
  return e2m1(bytes_as_words(p));
}
CANDOR_INLINE F32 high_e2m1(const uint8_t* p) {
  return e2m1(_mm512_srli_epi32(bytes_as_words(p), 4));
}

CANDOR_INLINE void transpose_16(__m512i* v) {
  __m512i a[16];
  __m512i b[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0x88);
    a[i + 4] = _mm512_shuffle_i32x4(b[i], b[i + 4], 0xdd);
    a[i + 8] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0x88);
    a[i + 12] = _mm512_shuffle_i32x4(b[i + 8], b[i + 12], 0xdd);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    v[i] = _mm512_shuffle_i32x4(a[i], a[i + 8], 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(a[i], a[i + 8], 0xdd);
  }
}
CANDOR_INLINE void store_interleaved(int32_t* dst, const __m512i* v) {
  __m512i block[16] = {v[0], v[1], v[2], v[3]};
  transpose_16(block);
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + 4 * i), _mm512_castsi512_si128(block[i]));
  }
}
CANDOR_INLINE I32 load_i(const int32_t* p) {
  return _mm512_loadu_si512(p);
}
CANDOR_INLINE void store_i(int32_t* p, I32 a) {
  _mm512_storeu_si512(p, a);
}
CANDOR_INLINE I32 splat_i(int32_t x) {
  return _mm512_set1_epi32(x);
}
CANDOR_INLINE I32 add_i(I32 a, I32 b) {
  return _mm512_add_epi32(a, b);
}
CANDOR_INLINE I32 mul_i(I32 a, I32 b) {
  return _mm512_mullo_epi32(a, b);
}
CANDOR_INLINE I32 and_i(I32 a, I32 b) {
  return _mm512_and_si512(a, b);
}
CANDOR_INLINE I32 or_i(I32 a, I32 b) {
  return _mm512_or_si512(a, b);
}
CANDOR_INLINE I32 max_i(I32 a, I32 b) {
  return _mm512_max_epi32(a, b);
}
template <int n>
CANDOR_INLINE I32 shl_i(I32 a) {
  return _mm512_slli_epi32(a, n);
}
template <int n>
CANDOR_INLINE I32 shr_i(I32 a) {
  return _mm512_srli_epi32(a, n);
}
CANDOR_INLINE F32 to_f32(I32 a) {
  return _mm512_cvtepi32_ps(a);
}
CANDOR_INLINE F32 bits_to_f32(I32 a) {
  return _mm512_castsi512_ps(a);
}
CANDOR_INLINE I32 f32_to_bits(F32 a) {
  return _mm512_castps_si512(a);
}
CANDOR_INLINE I32 round_i(F32 a) {
  return _mm512_cvtps_epi32(a);
}
// 64 words of the table are two registers, of which an instruction takes any 32; the bits above choose among them.
template <int n, int m>
CANDOR_INLINE void look_up_part(const uint16_t* table, const I32* a, I32* out) {
  if constexpr (n == 64) {
    const I32 low = _mm512_loadu_si512(table);
    const I32 high = _mm512_loadu_si512(table + 32);
#pragma GCC unroll 4
    for (int i = 0; i < m; ++i) out[i] = _mm512_permutex2var_epi16(low, a[i], high);
  } else {
    I32 upper[m];
    look_up_part<n / 2, m>(table, a, out);
    look_up_part<n / 2, m>(table + n / 2, a, upper);
#pragma GCC unroll 4
    for (int i = 0; i < m; ++i) {
      out[i] = _mm512_mask_blend_epi16(_mm512_test_epi16_mask(a[i], _mm512_set1_epi16(n / 2)), out[i], upper[i]);
    }
  }
}
template <int n, int m>
CANDOR_INLINE void look_up_pairs(const uint16_t* table, I32* a) {
  I32 out[m];
  look_up_part<n, m>(table, a, out);
#pragma GCC unroll 4
  for (int i = 0; i < m; ++i) a[i] = out[i];
}
CANDOR_INLINE I32 widen_u8(const uint8_t* p) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
CANDOR_INLINE I32 widen_u8_pairs(const uint8_t* p) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
CANDOR_INLINE I32 widen_i8_pairs(const uint8_t* p) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
CANDOR_INLINE I32 widen_i8(const uint8_t* p) {
  return _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
CANDOR_INLINE void store_i8(int8_t* p, I32 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}
CANDOR_INLINE void store_i16(int32_t* p, I32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a));
}
CANDOR_INLINE int32_t sum_lanes(I32 a) {
  return _mm512_reduce_add_epi32(a);
}
CANDOR_INLINE int32_t max_lanes(I32 a) {
  return _mm512_reduce_max_epi32(a);
}
CANDOR_INLINE F32 even_bf16(I32 pairs) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
}
CANDOR_INLINE F32 odd_bf16(I32 pairs) {
  return _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

CANDOR_INLINE float sum_tree(F32 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
CANDOR_INLINE float max_tree(F32 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// As instructions: gcc 12 moves sums from register to register around the intrinsics, and does not read x in place.
CANDOR_INLINE I32 madd16(I32 acc, I32 a, I32 scale) {
  __asm__("vpdpwssd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(scale));
  return acc;
}
CANDOR_INLINE I32 dot2(I32 acc, I32 w, int32_t x) {
  return madd16(acc, w, _mm512_set1_epi32(x));
}
CANDOR_INLINE I32 dot2_scalar(I32 acc, I32 w, const int32_t* x) {
  __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*x));
  return acc;
}
template <bool is_wide, bool in_halves = false, int n_panels = kDotPanels>
CANDOR_INLINE I32 dot4(I32 acc, U8 w, const int8_t* x) {
  if constexpr (n_panels == 1) {
    struct Four {
      int8_t x[4];
    };
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w.v), "m"(*reinterpret_cast<const Four*>(x)));
  } else {
    int32_t four;
    __builtin_memcpy(&four, x, 4);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(w.v), "v"(_mm512_set1_epi32(four)));
  }
  return acc;
}
template <bool is_wide>
CANDOR_INLINE I32 dot4_in_halves(U8 w, const int8_t* x);

CANDOR_INLINE U8 load_u(const uint8_t* p) {
  return {_mm512_loadu_si512(p)};
}
CANDOR_INLINE void store_u(uint8_t* p, U8 a) {
  _mm512_storeu_si512(p, a.v);
}
CANDOR_INLINE U8 as_bytes(I32 a) {
  return {a};
}
CANDOR_INLINE U8 or_u(U8 a, U8 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
template <int n>
CANDOR_INLINE U8 add_u(U8 a) {
  return {_mm512_add_epi8(a.v, _mm512_set1_epi8(static_cast<char>(n)))};
}
CANDOR_INLINE U8 flip_sign_u(U8 a) {
  return {_mm512_xor_si512(a.v, _mm512_set1_epi8(static_cast<char>(0x80)))};
}
CANDOR_INLINE U8 abs_u(U8 a) {
  return {_mm512_abs_epi8(a.v)};
}
template <int from, int to>
CANDOR_INLINE U8 move_bits(U8 a) {
  if constexpr (from > to) return {_mm512_srli_epi16(a.v, from - to)};
  if constexpr (from < to) return {_mm512_slli_epi16(a.v, to - from)};
  return a;
}
template <int mask>
CANDOR_INLINE U8 mask_u(U8 a) {
  if constexpr (mask == 0xff) return a;
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(static_cast<char>(mask)))};
}
template <int n>
CANDOR_INLINE U8 merge_low(U8 low, U8 high) {
  constexpr int kFirstChoosesSecondOrThird = 0xca;
  const __m512i mask = _mm512_set1_epi8((1 << n) - 1);
  return {_mm512_ternarylogic_epi32(mask, low.v, high.v, kFirstChoosesSecondOrThird)};
}
CANDOR_INLINE U8 lookup(const uint8_t* table, U8 a) {
  const __m128i entries = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), a.v)};
}
// q << 4 times a, or q times 16 a, has its bits in the upper byte of 16; q << 8 times 16 a, or q << 12 times a, in the
// upper 16 of 32.
template <bool is_high>
CANDOR_INLINE U8 rebase(U8 codes, I32 a, I32 b) {
  const __m512i odd = _mm512_and_si512(codes.v, _mm512_set1_epi16(is_high ? 0x00f0 : 0x000f));
  const __m512i even = _mm512_and_si512(codes.v, _mm512_set1_epi16(static_cast<short>(is_high ? 0xf000 : 0x0f00)));
  const __m512i upper = _mm512_mullo_epi16(odd, a);
  const __m512i lower = _mm512_mulhi_epu16(even, a);
  constexpr int kFirstAndSecondOrThird = 0xea;
  const __m512i mask = _mm512_set1_epi16(static_cast<short>(0xff00));
  return {_mm512_add_epi8(_mm512_ternarylogic_epi32(upper, mask, lower, kFirstAndSecondOrThird), b)};
}
CANDOR_INLINE void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}
CANDOR_INLINE void prefetch_far(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1);
}
