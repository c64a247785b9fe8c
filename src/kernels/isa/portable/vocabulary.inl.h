// The vector operations that all kernels are written in (16 lanes of f32 or int32, 64 bytes), in plain C++: what every
// other instruction set's must equal bit for bit. No include guard: see isa/README.md.

constexpr bool kDotIsSigned = false;   // dot4 takes unsigned weights up to 255
constexpr bool kDotHasHalves = false;  // dot4 can add in 16 bits
// Panels and activation rows that a micro-kernel of matmul holds.
constexpr int kDotPanels = 1;
constexpr int kTileRows = 2;
constexpr int kTallRows = kTileRows;  // of one panel
constexpr int kMostDots = kTallRows;  // rows of a tile whose dots are held together
constexpr int kTileRowsF32 = 2;
constexpr int kTileRowsBf16 = 2;
constexpr int kQueryTile = 1;  // queries of attention that a micro-kernel holds, two chains each
constexpr int kCodeTile = 1;   // the same on pages of codes, one sum each

struct F32 {
  float v[16];
};
struct I32 {
  int32_t v[16];
};
struct U8 {
  uint8_t v[64];
};

#define CANDOR_LANES(type, expression)                  \
  type out;                                             \
  for (int i = 0; i < 16; ++i) out.v[i] = (expression); \
  return out

inline F32 load(const float* p) {
  CANDOR_LANES(F32, p[i]);
}
inline void store(float* p, F32 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
inline F32 splat(float x) {
  CANDOR_LANES(F32, x);
}
inline F32 add(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] + b.v[i]);
}
inline F32 sub(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] - b.v[i]);
}
inline F32 mul(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] * b.v[i]);
}
inline F32 div(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] / b.v[i]);
}
inline F32 fma(F32 a, F32 b, F32 c) {
  CANDOR_LANES(F32, __builtin_fmaf(a.v[i], b.v[i], c.v[i]));
}
// a where a > b, else b: a NaN in either gives b.
inline F32 max(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
inline F32 min(F32 a, F32 b) {
  CANDOR_LANES(F32, a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
// 0 where x < limit, else y.
inline F32 zero_if_less(F32 y, F32 x, F32 limit) {
  CANDOR_LANES(F32, x.v[i] < limit.v[i] ? 0.0f : y.v[i]);
}
// y in lanes [begin, end), `other` elsewhere.
inline F32 keep_lanes(F32 y, int begin, int end, F32 other) {
  CANDOR_LANES(F32, i >= begin && i < end ? y.v[i] : other.v[i]);
}
inline F32 fma_scalar(F32 w, const float* x, F32 c) {
  return fma(splat(*x), w, c);
}
inline float fma1(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline float sqrt1(float a) {
  return std::sqrt(a);
}

inline F32 round_bf16(F32 a) {
  CANDOR_LANES(F32, bf16_to_f32(f32_to_bf16(a.v[i])));
}
// The upper halves: a is already rounded to bf16.
inline void store_halves(uint16_t* p, F32 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(a.v[i]) >> 16);
}
inline F32 load_f16(const uint8_t* p) {
  uint16_t half[16];
  std::memcpy(half, p, sizeof half);
  CANDOR_LANES(F32, f16_to_f32(half[i]));
}

// 16 pairs of codes E4M3, 2^-8 times the first ones, and the second ones.
inline F32 even_e4m3(const uint8_t* p) {
  CANDOR_LANES(F32, f16_to_f32(quant::e4m3_as_f16(p[2 * i])));
}
inline F32 odd_e4m3(const uint8_t* p) {
  CANDOR_LANES(F32, f16_to_f32(quant::e4m3_as_f16(p[2 * i + 1])));
}
// 16 scales E4M3, 2^-8 times.
inline F32 scales_e4m3(const uint8_t* p) {
  CANDOR_LANES(F32, f16_to_f32(quant::e4m3_as_f16(p[i])));
}
// The codes E2M1 of 16 bytes' low nibbles, and of their high ones.
inline F32 low_e2m1(const uint8_t* p) {
  CANDOR_LANES(F32, quant::kE2M1Values[p[i] & 15]);
}
inline F32 high_e2m1(const uint8_t* p) {
  CANDOR_LANES(F32, quant::kE2M1Values[p[i] >> 4]);
}

inline I32 load_i(const int32_t* p) {
  CANDOR_LANES(I32, p[i]);
}
inline void store_i(int32_t* p, I32 a) {
  for (int i = 0; i < 16; ++i) p[i] = a.v[i];
}
// v: [16]; lane i of v[j] and lane j of v[i] change places.
inline void transpose_16(I32* v) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < i; ++j) std::swap(v[i].v[j], v[j].v[i]);
  }
}
// dst[4 i + r] = lane i of v[r], r < 4.
inline void store_interleaved(int32_t* dst, const I32* v) {
  for (int i = 0; i < 16; ++i) {
    for (int r = 0; r < 4; ++r) dst[4 * i + r] = v[r].v[i];
  }
}
inline I32 splat_i(int32_t x) {
  CANDOR_LANES(I32, x);
}
inline I32 add_i(I32 a, I32 b) {
  CANDOR_LANES(I32, a.v[i] + b.v[i]);
}
inline I32 mul_i(I32 a, I32 b) {
  CANDOR_LANES(I32, a.v[i] * b.v[i]);
}
inline I32 and_i(I32 a, I32 b) {
  CANDOR_LANES(I32, a.v[i] & b.v[i]);
}
inline I32 or_i(I32 a, I32 b) {
  CANDOR_LANES(I32, a.v[i] | b.v[i]);
}
inline I32 max_i(I32 a, I32 b) {
  CANDOR_LANES(I32, a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
template <int n>
inline I32 shl_i(I32 a) {
  CANDOR_LANES(I32, static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) << n));
}
template <int n>
inline I32 shr_i(I32 a) {
  CANDOR_LANES(I32, static_cast<int32_t>(static_cast<uint32_t>(a.v[i]) >> n));
}
inline F32 to_f32(I32 a) {
  CANDOR_LANES(F32, static_cast<float>(a.v[i]));
}
inline F32 bits_to_f32(I32 a) {
  CANDOR_LANES(F32, std::bit_cast<float>(a.v[i]));
}
inline I32 f32_to_bits(F32 a) {
  CANDOR_LANES(I32, std::bit_cast<int32_t>(a.v[i]));
}
// Nearest integer, halves to even. REQUIRES: |a| < 2^22.
inline I32 round_i(F32 a) {
  CANDOR_LANES(I32, static_cast<int32_t>((a.v[i] + 12582912.0f) - 12582912.0f));
}
// a[i] = table[a[i]], of both halves of each lane, for i < m. table: [n]; REQUIRES: halves below n.
template <int n, int m>
inline void look_up_pairs(const uint16_t* table, I32* a) {
  for (int i = 0; i < m; ++i) {
    for (int32_t& lane : a[i].v) lane = table[lane & 0xffff] | table[static_cast<uint32_t>(lane) >> 16] << 16;
  }
}
inline I32 widen_u8(const uint8_t* p) {
  CANDOR_LANES(I32, p[i]);
}
inline I32 widen_u8_pairs(const uint8_t* p) {
  CANDOR_LANES(I32, p[2 * i] | p[2 * i + 1] << 16);
}
inline I32 widen_i8_pairs(const uint8_t* p) {
  CANDOR_LANES(I32, (static_cast<int8_t>(p[2 * i]) & 0xffff) |
                        static_cast<int32_t>(static_cast<uint32_t>(static_cast<int8_t>(p[2 * i + 1])) << 16));
}
inline I32 widen_i8(const uint8_t* p) {
  CANDOR_LANES(I32, static_cast<int8_t>(p[i]));
}
inline void store_i8(int8_t* p, I32 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}
// As 16 bits, one after another. REQUIRES: lanes fit them.
inline void store_i16(int32_t* p, I32 a) {
  int16_t halves[16];
  for (int i = 0; i < 16; ++i) halves[i] = static_cast<int16_t>(a.v[i]);
  std::memcpy(p, halves, sizeof halves);
}
inline int32_t sum_lanes(I32 a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += a.v[i];
  return sum;
}
inline int32_t max_lanes(I32 a) {
  int32_t largest = a.v[0];
  for (int i = 1; i < 16; ++i) largest = a.v[i] > largest ? a.v[i] : largest;
  return largest;
}
// bf16 pairs of k, low half first: both as f32.
inline F32 even_bf16(I32 pairs) {
  return bits_to_f32(shl_i<16>(pairs));
}
inline F32 odd_bf16(I32 pairs) {
  return bits_to_f32(and_i(pairs, splat_i(static_cast<int32_t>(0xffff0000u))));
}

// The 16-lane sum of numerics.md.
inline float sum_tree(F32 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] = a.v[i] + a.v[i + half];
  }
  return a.v[0];
}
inline float max_tree(F32 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) a.v[i] = a.v[i] > a.v[i + half] ? a.v[i] : a.v[i + half];
  }
  return a.v[0];
}

// acc + a * scale. REQUIRES: a fits 16 bits signed; scale is 16 bits signed in the low half, 0 in the high one. Where
// kDotHasHalves also low(a) * low(scale) + high(a) * high(scale).
inline I32 madd16(I32 acc, I32 a, I32 scale) {
  CANDOR_LANES(I32, acc.v[i] + a.v[i] * static_cast<int16_t>(scale.v[i]));
}
// acc + low(w) * low(x) + high(w) * high(x), halves signed.
inline I32 dot2(I32 acc, I32 w, int32_t x) {
  const int32_t low = static_cast<int16_t>(x);
  const int32_t high = static_cast<int16_t>(x >> 16);
  CANDOR_LANES(I32, acc.v[i] + static_cast<int16_t>(w.v[i]) * low + static_cast<int16_t>(w.v[i] >> 16) * high);
}
inline I32 dot2_scalar(I32 acc, I32 w, const int32_t* x) {
  return dot2(acc, w, *x);
}
// acc[r] + sum over i < 4 of w[4 r + i] * x[i]; w unsigned, x signed. in_halves, where kDotHasHalves: the 16 low bits
// take i < 2, the high ones the others, all modulo 2^16.
template <bool is_wide, bool in_halves = false, int = kDotPanels>
inline I32 dot4(I32 acc, U8 w, const int8_t* x) {
  CANDOR_LANES(I32,
               acc.v[i] + w.v[4 * i] * x[0] + w.v[4 * i + 1] * x[1] + w.v[4 * i + 2] * x[2] + w.v[4 * i + 3] * x[3]);
}
// The same in halves, from 0. REQUIRES: kDotHasHalves.
template <bool is_wide>
inline I32 dot4_in_halves(U8 w, const int8_t* x);

inline U8 load_u(const uint8_t* p) {
  U8 out;
  std::memcpy(out.v, p, 64);
  return out;
}
inline void store_u(uint8_t* p, U8 a) {
  std::memcpy(p, a.v, 64);
}
// The bytes of lanes, the lowest first.
inline U8 as_bytes(I32 a) {
  U8 out;
  std::memcpy(out.v, a.v, 64);
  return out;
}
inline U8 or_u(U8 a, U8 b) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] | b.v[i]);
  return a;
}
// Each byte + n, modulo 256.
template <int n>
inline U8 add_u(U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] + n);
  return a;
}
inline U8 flip_sign_u(U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] ^ 0x80u);
  return a;
}
inline U8 abs_u(U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] < 128 ? a.v[i] : 256 - a.v[i]);
  return a;
}
// Bit `from` of each byte becomes bit `to`, its neighbours with it; what comes in from outside the byte is anything.
template <int from, int to>
inline U8 move_bits(U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(from > to ? a.v[i] >> (from - to) : a.v[i] << (to - from));
  return a;
}
template <int mask>
inline U8 mask_u(U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = static_cast<uint8_t>(a.v[i] & mask);
  return a;
}
// The n low bits of each byte of `low`, the others of `high`.
template <int n>
inline U8 merge_low(U8 low, U8 high) {
  constexpr int kMask = (1 << n) - 1;
  for (int i = 0; i < 64; ++i) low.v[i] = static_cast<uint8_t>((low.v[i] & kMask) | (high.v[i] & ~kMask));
  return low;
}
// table: 16 bytes; a: indices below 16.
inline U8 lookup(const uint8_t* table, U8 a) {
  for (int i = 0; i < 64; ++i) a.v[i] = table[a.v[i]];
  return a;
}
// Bytes ((a * q) >> 4) + b of codes q in the low or the high nibbles, of which those of even and odd k have changed
// places. a: in both halves of a lane, 16 times as much for low nibbles; b: in every byte of a lane. REQUIRES: a < 256.
template <bool is_high>
inline U8 rebase(U8 codes, I32 a, I32 b) {
  U8 out;
  for (int i = 0; i < 64; ++i) {
    const int code = (codes.v[i ^ 1] >> (is_high ? 4 : 0)) & 15;
    const int product = code * (a.v[i / 4] & 0xffff);
    out.v[i] = static_cast<uint8_t>((product >> (is_high ? 4 : 8)) + (b.v[i / 4] & 0xff));
  }
  return out;
}
inline void prefetch(const void* p) {
  __builtin_prefetch(p);
}
inline void prefetch_far(const void* p) {
  __builtin_prefetch(p, 0, 2);
}

#undef CANDOR_LANES
