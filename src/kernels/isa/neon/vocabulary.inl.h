// The vector operations that all kernels are written in (16 lanes), on Armv8-A NEON: 16 lanes are four registers.
// Meanings as in isa/portable/vocabulary.inl.h. kHasSdot says whether the region that includes this has dot products.

constexpr bool kDotIsSigned = true;
constexpr bool kDotHasHalves = false;
constexpr int kDotPanels = 1;
constexpr int kTileRows = 3;          // 12 dots + 12 sums + 4 of weights + an activation of 32 registers
constexpr int kTallRows = kTileRows;  // of one panel
constexpr int kMostDots = kTallRows;  // rows of a tile whose dots are held together
constexpr int kTileRowsF32 = 4;       // 16 sums + 4 of weights + an activation
constexpr int kTileRowsBf16 = 2;      // two chains for each of 8
constexpr int kQueryTile = 2;         // queries of attention that a micro-kernel holds, two chains each
constexpr int kCodeTile = 4;          // the same on pages of codes, one sum each

struct F32 {
  float32x4_t v[4];
};
struct I32 {
  int32x4_t v[4];
};
struct U8 {
  uint8x16_t v[4];
};

// Quarter i of the result.
#define CANDOR_QUARTERS(type, expression)                                      \
  type out;                                                                    \
  _Pragma("GCC unroll 4") for (int i = 0; i < 4; ++i) out.v[i] = (expression); \
  return out

CANDOR_INLINE F32 load(const float* p) {
  CANDOR_QUARTERS(F32, vld1q_f32(p + 4 * i));
}
CANDOR_INLINE void store(float* p, F32 a) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
}
CANDOR_INLINE F32 splat(float x) {
  CANDOR_QUARTERS(F32, vdupq_n_f32(x));
}
CANDOR_INLINE F32 add(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vaddq_f32(a.v[i], b.v[i]));
}
CANDOR_INLINE F32 sub(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vsubq_f32(a.v[i], b.v[i]));
}
CANDOR_INLINE F32 mul(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vmulq_f32(a.v[i], b.v[i]));
}
CANDOR_INLINE F32 div(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vdivq_f32(a.v[i], b.v[i]));
}
CANDOR_INLINE F32 fma(F32 a, F32 b, F32 c) {
  CANDOR_QUARTERS(F32, vfmaq_f32(c.v[i], a.v[i], b.v[i]));
}
CANDOR_INLINE F32 max(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vbslq_f32(vcgtq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]));
}
CANDOR_INLINE F32 min(F32 a, F32 b) {
  CANDOR_QUARTERS(F32, vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]));
}
CANDOR_INLINE F32 zero_if_less(F32 y, F32 x, F32 limit) {
  CANDOR_QUARTERS(F32, vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(y.v[i]), vcltq_f32(x.v[i], limit.v[i]))));
}
CANDOR_INLINE F32 keep_lanes(F32 y, int begin, int end, F32 other) {
  const int32_t lanes[4] = {0, 1, 2, 3};
  const int32x4_t lane = vld1q_s32(lanes);
  CANDOR_QUARTERS(
      F32, vbslq_f32(vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin - 4 * i)), vcltq_s32(lane, vdupq_n_s32(end - 4 * i))),
                     y.v[i], other.v[i]));
}
CANDOR_INLINE F32 fma_scalar(F32 w, const float* x, F32 c) {
  const float one = *x;
  CANDOR_QUARTERS(F32, vfmaq_n_f32(c.v[i], w.v[i], one));
}
CANDOR_INLINE float fma1(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CANDOR_INLINE float sqrt1(float a) {
  return vget_lane_f32(vsqrt_f32(vdup_n_f32(a)), 0);
}

CANDOR_INLINE uint32x4_t round_bf16_quarter(uint32x4_t u) {
  const uint32x4_t magnitude = vandq_u32(u, vdupq_n_u32(0x7fffffff));
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  uint32x4_t y = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  y = vbslq_u32(vcgtq_u32(magnitude, vdupq_n_u32(0x7f800000)), vorrq_u32(u, vdupq_n_u32(0x00400000)), y);
  y = vbslq_u32(vcltq_u32(magnitude, vdupq_n_u32(0x00800000)), vandq_u32(u, vdupq_n_u32(0x80000000)), y);
  return vandq_u32(y, vdupq_n_u32(0xffff0000));
}
CANDOR_INLINE F32 round_bf16(F32 a) {
  CANDOR_QUARTERS(F32, vreinterpretq_f32_u32(round_bf16_quarter(vreinterpretq_u32_f32(a.v[i]))));
}
CANDOR_INLINE void store_halves(uint16_t* p, F32 a) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vshrn_n_u32(vreinterpretq_u32_f32(a.v[i]), 16));
}
CANDOR_INLINE F32 load_f16(const uint8_t* p) {
  CANDOR_QUARTERS(F32, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p + 8 * i))));
}

// codes: in the upper byte of each half.
CANDOR_INLINE float32x4_t widen_e4m3(int16x4_t codes) {
  const uint16x4_t halves = vand_u16(vreinterpret_u16_s16(vshr_n_s16(codes, 1)), vdup_n_u16(0xbf80));
  return vcvt_f32_f16(vreinterpret_f16_u16(halves));
}
CANDOR_INLINE F32 even_e4m3(const uint8_t* p) {
  CANDOR_QUARTERS(F32, widen_e4m3(vshl_n_s16(vreinterpret_s16_u8(vld1_u8(p + 8 * i)), 8)));
}
CANDOR_INLINE F32 odd_e4m3(const uint8_t* p) {
  CANDOR_QUARTERS(F32, widen_e4m3(vreinterpret_s16_u8(vld1_u8(p + 8 * i))));
}
CANDOR_INLINE F32 scales_e4m3(const uint8_t* p) {
  const uint8x16_t codes = vld1q_u8(p);
  const int16x8_t low = vreinterpretq_s16_u16(vshll_n_u8(vget_low_u8(codes), 8));
  const int16x8_t high = vreinterpretq_s16_u16(vshll_n_u8(vget_high_u8(codes), 8));
  return {{widen_e4m3(vget_low_s16(low)), widen_e4m3(vget_high_s16(low)), widen_e4m3(vget_low_s16(high)),
           widen_e4m3(vget_high_s16(high))}};
}
// codes: 16, in the low 4 bits. Both bytes of a bf16 are looked up.
CANDOR_INLINE F32 e2m1(uint8x16_t codes) {
  alignas(16) constexpr uint8_t kLow[16] = {0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0,
                                            0x00, 0x00, 0x80, 0xc0, 0x00, 0x40, 0x80, 0xc0};
  alignas(16) constexpr uint8_t kHigh[16] = {0x00, 0x3f, 0x3f, 0x3f, 0x40, 0x40, 0x40, 0x40,
                                             0x80, 0xbf, 0xbf, 0xbf, 0xc0, 0xc0, 0xc0, 0xc0};
  const uint8x16_t low = vqtbl1q_u8(vld1q_u8(kLow), codes);
  const uint8x16_t high = vqtbl1q_u8(vld1q_u8(kHigh), codes);
  const uint16x8_t a = vreinterpretq_u16_u8(vzip1q_u8(low, high));
  const uint16x8_t b = vreinterpretq_u16_u8(vzip2q_u8(low, high));
  const auto widen = [](uint16x4_t half) { return vreinterpretq_f32_u32(vshll_n_u16(half, 16)); };
  return {{widen(vget_low_u16(a)), widen(vget_high_u16(a)), widen(vget_low_u16(b)), widen(vget_high_u16(b))}};
}
CANDOR_INLINE F32 low_e2m1(const uint8_t* p) {
  return e2m1(vandq_u8(vld1q_u8(p), vdupq_n_u8(15)));
}
CANDOR_INLINE F32 high_e2m1(const uint8_t* p) {
  return e2m1(vshrq_n_u8(vld1q_u8(p), 4));
}

CANDOR_INLINE I32 load_i(const int32_t* p) {
  CANDOR_QUARTERS(I32, vld1q_s32(p + 4 * i));
}
CANDOR_INLINE void store_i(int32_t* p, I32 a) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_s32(p + 4 * i, a.v[i]);
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
CANDOR_INLINE void store_interleaved(int32_t* dst, const I32* v) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst4q_s32(dst + 16 * i, {{v[0].v[i], v[1].v[i], v[2].v[i], v[3].v[i]}});
}
CANDOR_INLINE I32 splat_i(int32_t x) {
  CANDOR_QUARTERS(I32, vdupq_n_s32(x));
}
CANDOR_INLINE I32 add_i(I32 a, I32 b) {
  CANDOR_QUARTERS(I32, vaddq_s32(a.v[i], b.v[i]));
}
CANDOR_INLINE I32 mul_i(I32 a, I32 b) {
  CANDOR_QUARTERS(I32, vmulq_s32(a.v[i], b.v[i]));
}
CANDOR_INLINE I32 and_i(I32 a, I32 b) {
  CANDOR_QUARTERS(I32, vandq_s32(a.v[i], b.v[i]));
}
CANDOR_INLINE I32 or_i(I32 a, I32 b) {
  CANDOR_QUARTERS(I32, vorrq_s32(a.v[i], b.v[i]));
}
CANDOR_INLINE I32 max_i(I32 a, I32 b) {
  CANDOR_QUARTERS(I32, vmaxq_s32(a.v[i], b.v[i]));
}
template <int n>
CANDOR_INLINE I32 shl_i(I32 a) {
  CANDOR_QUARTERS(I32, vshlq_n_s32(a.v[i], n));
}
template <int n>
CANDOR_INLINE I32 shr_i(I32 a) {
  if constexpr (n == 0) return a;
  CANDOR_QUARTERS(I32, vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a.v[i]), n == 0 ? 1 : n)));
}
CANDOR_INLINE F32 to_f32(I32 a) {
  CANDOR_QUARTERS(F32, vcvtq_f32_s32(a.v[i]));
}
CANDOR_INLINE F32 bits_to_f32(I32 a) {
  CANDOR_QUARTERS(F32, vreinterpretq_f32_s32(a.v[i]));
}
CANDOR_INLINE I32 f32_to_bits(F32 a) {
  CANDOR_QUARTERS(I32, vreinterpretq_s32_f32(a.v[i]));
}
CANDOR_INLINE I32 round_i(F32 a) {
  CANDOR_QUARTERS(I32, vcvtnq_s32_f32(a.v[i]));
}
#include "kernels/generic/look_up.inl.h"
CANDOR_INLINE I32 widen_u8(const uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
  const uint16x8_t high = vmovl_high_u8(bytes);
  return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))), vreinterpretq_s32_u32(vmovl_high_u16(low)),
           vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))), vreinterpretq_s32_u32(vmovl_high_u16(high))}};
}
CANDOR_INLINE I32 widen_u8_pairs(const uint8_t* p) {
  const uint8x16_t low = vld1q_u8(p);
  const uint8x16_t high = vld1q_u8(p + 16);
  return {{vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(low))), vreinterpretq_s32_u16(vmovl_high_u8(low)),
           vreinterpretq_s32_u16(vmovl_u8(vget_low_u8(high))), vreinterpretq_s32_u16(vmovl_high_u8(high))}};
}
CANDOR_INLINE I32 widen_i8_pairs(const uint8_t* p) {
  const int8x16_t low = vreinterpretq_s8_u8(vld1q_u8(p));
  const int8x16_t high = vreinterpretq_s8_u8(vld1q_u8(p + 16));
  return {{vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(low))), vreinterpretq_s32_s16(vmovl_high_s8(low)),
           vreinterpretq_s32_s16(vmovl_s8(vget_low_s8(high))), vreinterpretq_s32_s16(vmovl_high_s8(high))}};
}
CANDOR_INLINE I32 widen_i8(const uint8_t* p) {
  const int8x16_t bytes = vreinterpretq_s8_u8(vld1q_u8(p));
  const int16x8_t low = vmovl_s8(vget_low_s8(bytes));
  const int16x8_t high = vmovl_high_s8(bytes);
  return {{vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)), vmovl_high_s16(high)}};
}
CANDOR_INLINE void store_i8(int8_t* p, I32 a) {
  const int16x8_t low = vcombine_s16(vmovn_s32(a.v[0]), vmovn_s32(a.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(a.v[2]), vmovn_s32(a.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
CANDOR_INLINE void store_i16(int32_t* p, I32 a) {
  for (int i = 0; i < 4; ++i) vst1_s16(reinterpret_cast<int16_t*>(p + 2 * i), vmovn_s32(a.v[i]));
}
CANDOR_INLINE int32_t sum_lanes(I32 a) {
  return vaddvq_s32(vaddq_s32(vaddq_s32(a.v[0], a.v[1]), vaddq_s32(a.v[2], a.v[3])));
}
CANDOR_INLINE int32_t max_lanes(I32 a) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.v[0], a.v[1]), vmaxq_s32(a.v[2], a.v[3])));
}
CANDOR_INLINE F32 even_bf16(I32 pairs) {
  return bits_to_f32(shl_i<16>(pairs));
}
CANDOR_INLINE F32 odd_bf16(I32 pairs) {
  return bits_to_f32(and_i(pairs, splat_i(static_cast<int32_t>(0xffff0000u))));
}

CANDOR_INLINE float sum_tree(F32 a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
CANDOR_INLINE float32x4_t larger(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
CANDOR_INLINE float max_tree(F32 a) {
  const float32x4_t four = larger(larger(a.v[0], a.v[2]), larger(a.v[1], a.v[3]));
  const float32x4_t two = larger(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(larger(two, vextq_f32(two, two, 1)), 0);
}

// The low halves, signed.
CANDOR_INLINE int32x4_t low_halves(int32x4_t a) {
  return vshrq_n_s32(vshlq_n_s32(a, 16), 16);
}
CANDOR_INLINE I32 madd16(I32 acc, I32 a, I32 scale) {
  CANDOR_QUARTERS(I32, vmlaq_s32(acc.v[i], a.v[i], low_halves(scale.v[i])));
}
CANDOR_INLINE I32 dot2(I32 acc, I32 w, int32_t x) {
  const int32_t low = static_cast<int16_t>(x);
  const int32_t high = static_cast<int16_t>(x >> 16);
  CANDOR_QUARTERS(I32, vmlaq_n_s32(vmlaq_n_s32(acc.v[i], low_halves(w.v[i]), low), vshrq_n_s32(w.v[i], 16), high));
}
CANDOR_INLINE I32 dot2_scalar(I32 acc, I32 w, const int32_t* x) {
  return dot2(acc, w, *x);
}
template <bool has_sdot>
CANDOR_INLINE int32x4_t dot4_quarter(int32x4_t acc, int8x16_t w, int8x16_t x) {
  if constexpr (has_sdot) {
    return vdotq_s32(acc, w, x);
  } else {
    // Two products fit 16 bits: 2 * 128 * 127.
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
    const int32x4_t high = vpaddlq_s16(vmull_high_s8(w, x));
    return vaddq_s32(acc, vpaddq_s32(low, high));
  }
}
template <bool is_wide, bool in_halves = false, int = kDotPanels>
CANDOR_INLINE I32 dot4(I32 acc, U8 w, const int8_t* x) {
  int32_t four;
  __builtin_memcpy(&four, x, 4);
  const int8x16_t all = vreinterpretq_s8_s32(vdupq_n_s32(four));
  CANDOR_QUARTERS(I32, dot4_quarter<kHasSdot>(acc.v[i], vreinterpretq_s8_u8(w.v[i]), all));
}
template <bool is_wide>
CANDOR_INLINE I32 dot4_in_halves(U8 w, const int8_t* x);

CANDOR_INLINE U8 load_u(const uint8_t* p) {
  CANDOR_QUARTERS(U8, vld1q_u8(p + 16 * i));
}
CANDOR_INLINE void store_u(uint8_t* p, U8 a) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) vst1q_u8(p + 16 * i, a.v[i]);
}
CANDOR_INLINE U8 as_bytes(I32 a) {
  CANDOR_QUARTERS(U8, vreinterpretq_u8_s32(a.v[i]));
}
CANDOR_INLINE U8 or_u(U8 a, U8 b) {
  CANDOR_QUARTERS(U8, vorrq_u8(a.v[i], b.v[i]));
}
template <int n>
CANDOR_INLINE U8 add_u(U8 a) {
  CANDOR_QUARTERS(U8, vaddq_u8(a.v[i], vdupq_n_u8(static_cast<uint8_t>(n))));
}
CANDOR_INLINE U8 flip_sign_u(U8 a) {
  CANDOR_QUARTERS(U8, veorq_u8(a.v[i], vdupq_n_u8(0x80)));
}
CANDOR_INLINE U8 abs_u(U8 a) {
  CANDOR_QUARTERS(U8, vreinterpretq_u8_s8(vabsq_s8(vreinterpretq_s8_u8(a.v[i]))));
}
template <int from, int to>
CANDOR_INLINE U8 move_bits(U8 a) {
  constexpr int kRight = from > to ? from - to : 1;
  constexpr int kLeft = to > from ? to - from : 0;
  if constexpr (from > to) {
    CANDOR_QUARTERS(U8, vshrq_n_u8(a.v[i], kRight));
  } else {
    CANDOR_QUARTERS(U8, vshlq_n_u8(a.v[i], kLeft));
  }
}
template <int mask>
CANDOR_INLINE U8 mask_u(U8 a) {
  if constexpr (mask == 0xff) return a;
  CANDOR_QUARTERS(U8, vandq_u8(a.v[i], vdupq_n_u8(mask)));
}
template <int n>
CANDOR_INLINE U8 merge_low(U8 low, U8 high) {
  CANDOR_QUARTERS(U8, vbslq_u8(vdupq_n_u8((1 << n) - 1), low.v[i], high.v[i]));
}
CANDOR_INLINE U8 lookup(const uint8_t* table, U8 a) {
  const uint8x16_t entries = vld1q_u8(table);
  CANDOR_QUARTERS(U8, vqtbl1q_u8(entries, a.v[i]));
}
template <bool is_high>
CANDOR_INLINE uint8x16_t rebase_quarter(uint8x16_t codes, int32x4_t a, int32x4_t b) {
  const uint8x16_t q = vrev16q_u8(is_high ? vshrq_n_u8(codes, 4) : vandq_u8(codes, vdupq_n_u8(15)));
  const uint16x8_t once = is_high ? vreinterpretq_u16_s32(a) : vshrq_n_u16(vreinterpretq_u16_s32(a), 4);
  const uint8x16_t each = vreinterpretq_u8_u16(vorrq_u16(once, vshlq_n_u16(once, 8)));
  const uint8x8_t low = vshrn_n_u16(vmull_u8(vget_low_u8(q), vget_low_u8(each)), 4);
  const uint8x16_t both = vshrn_high_n_u16(low, vmull_high_u8(q, each), 4);
  return vaddq_u8(both, vreinterpretq_u8_s32(b));
}
template <bool is_high>
CANDOR_INLINE U8 rebase(U8 codes, I32 a, I32 b) {
  CANDOR_QUARTERS(U8, rebase_quarter<is_high>(codes.v[i], a.v[i], b.v[i]));
}
CANDOR_INLINE void prefetch(const void* p) {
  __builtin_prefetch(p);
}
CANDOR_INLINE void prefetch_far(const void* p) {
  __builtin_prefetch(p, 0, 2);
}

#undef CANDOR_QUARTERS
