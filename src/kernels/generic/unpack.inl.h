// Packed weights decoded (dequantised) as far as dot products need: a unit's codes as bytes and its scales in 32
// bits, in a thread's own cache (kernels/packed_format.h has the bits).

struct alignas(64) BlockUnit {
  uint8_t codes[kUnit / 4][64];  // group of 4 k, then row, then k
  int32_t scales[16][16];     // sub-scale (kInHalves: twice), row; rebased: a_j for low nibbles, for high ones (rebase)
  int32_t bias_pairs[4][16];  // sub-scales 2p (low half), 2p + 1, shifted by kBiasShift
  int32_t min_pairs[8][16];   // rebased: b_j, in every byte
  float d[8][16];             // super-blocks: [0]
  float m[8][16];             // 32-blocks
  float minus_m[16];
};

// Grids become bytes before they are multiplied (matmul_grids.inl.h).
constexpr PackedFormat kUnpackedGrid = {.dtype = DType::kIQ2_S,
                                        .is_super = true,
                                        .low_bits = 8,
                                        .sub_scales = SubScales::kBytes,
                                        .n_groups = 16,
                                        .scale_bytes = 16};
constexpr PackedFormat multiplied_format(DType dtype) {
  return dtype == kUnpackedGrid.dtype ? kUnpackedGrid : *find_packed_format(dtype);
}

// What a format needs of the dot product.
template <DType dtype>
struct BlockTraits {
  static constexpr PackedFormat kPacked = multiplied_format(dtype);
  static constexpr bool kIsIq4 = kPacked.values == CodeValues::kIq4;
  // One scale on each side for 256 k: weights become bytes and their sum needs nothing more.
  static constexpr bool kIsRebased = kPacked.values == CodeValues::kRebased;
  static constexpr bool kHasOneScale = kPacked.sub_scales == SubScales::kOnes;
  // The range of weights needs all 8 bits: unsigned with an offset of 128, or signed where dot4 wants it so.
  static constexpr bool kIsWide = kIsIq4 || kIsRebased || kPacked.low_bits == 8;
  // Dots add up in 16 bits: fewer operations, so that they may be as long as they fit, 16 k of 8 groups on each side.
  static constexpr bool kInHalves = kDotHasHalves && !kIsWide && dtype != DType::kQ5_1;
  // Added to the weights to make them unsigned; dots start at -kOffset * (sum of x).
  static constexpr int kOffset = kIsWide                              ? (kDotIsSigned ? 0 : 128)
                                 : kPacked.values == CodeValues::kFp4 ? 12
                                 : dtype == DType::kQ4_K              ? (kInHalves ? 0 : 8)
                                 : dtype == DType::kQ5_K              ? 16
                                                                      : kPacked.offset;
  // Q4_K and Q5_K: dots of q - 2^kBiasShift fit 16 bits; the sub-scales times the sums of x give the rest.
  static constexpr int kBiasShift = kOffset == 0 ? 0 : dtype == DType::kQ4_K ? 3 : dtype == DType::kQ5_K ? 4 : 0;
  static constexpr bool kFits16 = kPacked.is_super && !kIsWide;
  // |code - kOffset| at most, or |value - kOffset|; of half the k of a scale, times 127, a sum in halves must fit.
  static constexpr int kCodes = 1 << (kPacked.low_bits + kPacked.high_bits);
  static constexpr int kAbove = kPacked.values == CodeValues::kFp4 ? 12 : kCodes - 1 - kOffset;
  static constexpr int kLargest = kAbove > kOffset ? kAbove : kOffset;
  static constexpr int kHalf = (kPacked.is_super ? kUnit / kPacked.n_groups : 32) / 2;
  static_assert(!kInHalves || kLargest * 127 * kHalf < 32768);
  // Whether rows with small sums of |x| have a plan of their own: no product of theirs can overflow 16 bits, so that a
  // dot may be longer or go without its offset.
  static constexpr bool kHasSmallSums =
      !kInHalves && (dtype == DType::kQ4_K || dtype == DType::kQ5_K || dtype == DType::kQ6_K);
};

// The dots that a super-block's products are added by, each times its sub-scale: of kGroups groups of 4 k, of codes
// less kOffset, 2^kBiasShift of which the sums of x give back. Every |dot| < 2^15 where madd16 multiplies it: 32 k of
// Q4_K: 32 * 8 * 127; 16 k of Q5_K: 16 * 16 * 127; 8 k of Q6_K: 8 * 32 * 127. In halves twice as many: 32 of Q4_K, as
// codes without an offset, have 16 * 15 * 127 in each.
template <DType dtype, bool small_sums>
struct DotPlan {
  using Traits = BlockTraits<dtype>;
  static constexpr bool kHasThirtyTwos = dtype == DType::kQ4_K || dtype == DType::kIQ4_XS || Traits::kHasOneScale;
  static constexpr bool kHasSixteens = Traits::kPacked.is_super && !Traits::kIsRebased && !kHasThirtyTwos;
  static constexpr bool kHasWholeGroups = Traits::kInHalves && Traits::kPacked.is_super;  // all k of a sub-scale
  static constexpr int kGroups = kHasWholeGroups         ? kUnit / 4 / Traits::kPacked.n_groups
                                 : dtype == DType::kQ6_K ? 2
                                 : kHasSixteens          ? 4
                                                         : 8;
  static constexpr int kOffset = Traits::kOffset;
  static constexpr int kBiasShift = Traits::kBiasShift;
  static constexpr int kDots = kUnit / 4 / kGroups;
  static_assert(Traits::kInHalves || !Traits::kFits16 || 4 * kGroups * Traits::kLargest * 127 < 32768);
};

// For rows whose sums of |x| over every dot are at most kMostSum: kLargest * kMostSum < 2^15, so that longer dots (or
// dots without an offset) fit, and fewer products remain.
template <DType dtype>
struct DotPlan<dtype, true> {
  static constexpr int kGroups = dtype == DType::kQ6_K ? 4 : 8;
  static constexpr int kOffset = dtype == DType::kQ4_K ? 0 : BlockTraits<dtype>::kOffset;
  static constexpr int kBiasShift = dtype == DType::kQ4_K ? 0 : BlockTraits<dtype>::kBiasShift;
  static constexpr int kDots = kUnit / 4 / kGroups;
  static constexpr int kLargest = dtype == DType::kQ4_K ? 15 : kOffset;  // |code - kOffset|
  static constexpr int kMostSum = 32767 / kLargest;
};

template <DType dtype>
inline U8 finish_codes(U8 codes) {
  alignas(16) static constexpr uint8_t kFp4[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  alignas(16) static constexpr int8_t kIq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                  1,    13,   25,  38,  53,  69,  89,  113};
  if constexpr (BlockTraits<dtype>::kPacked.values == CodeValues::kFp4) codes = lookup(kFp4, codes);
  if constexpr (BlockTraits<dtype>::kPacked.values == CodeValues::kSigns) codes = move_bits<0, 1>(codes);
  if constexpr (BlockTraits<dtype>::kIsIq4) {
    codes = lookup(reinterpret_cast<const uint8_t*>(kIq4), codes);
    if constexpr (!kDotIsSigned) codes = flip_sign_u(codes);
  }
  if constexpr (BlockTraits<dtype>::kPacked.low_bits == 8 && kDotIsSigned) codes = flip_sign_u(codes);
  return codes;
}

constexpr size_t kLineBytes = 64;

// Prefetches the unit that comes next, a few lines at a time between computations, so that memory never rests. Into the
// second-level cache: a first-level one waits for fewer lines (24 on Zen 4) than memory sends at once at its full rate.
template <int n_lines>
class UnitPrefetcher {
 public:
  // A unit of n_bytes in each of n_panels (1 or 2), stride apart; every n_turns-th step prefetches n_lines of each.
  UnitPrefetcher(const uint8_t* src, size_t n_bytes, int64_t n_panels, size_t stride, int n_turns)
      : at_(src), end_(src + n_bytes), apart_(n_panels > 1 ? stride : 0), n_turns_(n_turns), turns_left_(n_turns) {}

  CANDOR_INLINE void step() {
    if (--turns_left_ > 0 || at_ >= end_) return;
    turns_left_ = n_turns_;
    prefetch_at(at_);
    if (apart_ != 0) prefetch_at(at_ + apart_);
    at_ += kLineBytes * n_lines;
  }

 private:
  static CANDOR_INLINE void prefetch_at(const uint8_t* at) {
#pragma GCC unroll 32
    for (int i = 0; i < n_lines; ++i) {
      prefetch_far(at + kLineBytes * static_cast<size_t>(i));
    }
  }

  const uint8_t* at_;
  const uint8_t* end_;
  size_t apart_;
  int n_turns_;
  int turns_left_;
};

// n_lines, so that n_steps cover a unit.
constexpr int prefetch_lines(size_t n_bytes, int n_steps) {
  const int n_lines = static_cast<int>((n_bytes + kLineBytes - 1) / kLineBytes);
  return (n_lines + n_steps - 1) / n_steps;
}

// The bits at `at` of every byte of the plane of high bits in their place above the low ones, which may be anything.
// Above four low bits, fields 4 bits apart are masked together.
template <PackedFormat f, int at>
inline U8 high_field(U8 h) {
  constexpr int kMask = ((1 << f.high_bits) - 1) << f.low_bits;
  if constexpr (f.low_bits != 4) return mask_u<kMask>(move_bits<at, f.low_bits>(h));
  const U8 two = mask_u<(kMask | kMask >> 4)>(move_bits<at % 4, 0>(h));
  return at < 4 ? move_bits<0, 4>(two) : two;
}

// Group g of the 8 that one vector of the plane of single bits covers. low, high: where these 8 begin.
template <DType dtype, int g>
inline U8 unpack_codes_group(const uint8_t* low, const uint8_t* high) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  constexpr int kLowPer = 8 / f.low_bits;
  constexpr int kLowAt = f.low_bits * (g % kLowPer);
  const U8 l = load_u(low + 64 * (g / kLowPer));
  if constexpr (f.high_bits == 0) {
    return finish_codes<dtype>(mask_u<(1 << f.low_bits) - 1>(move_bits<kLowAt, 0>(l)));
  } else {
    constexpr int kHighPer = 8 / f.high_bits;
    const U8 h = load_u(high + 64 * (g / kHighPer));
    return merge_low<f.low_bits>(move_bits<kLowAt, 0>(l), high_field<f, f.high_bits*(g % kHighPer)>(h));
  }
}

// The same of any format: rebased codes become weights. b: 32 k's number of the unit.
template <DType dtype, int g>
inline U8 unpack_group(const uint8_t* low, const uint8_t* high, const BlockUnit& unit, int b) {
  if constexpr (BlockTraits<dtype>::kIsRebased) {
    constexpr bool kIsHigh = g % 2 == 1;
    return rebase<kIsHigh>(load_u(low + 64 * (g / 2)), load_i(unit.scales[kIsHigh ? 8 + b : b]),
                           load_i(unit.min_pairs[b]));
  } else {
    return unpack_codes_group<dtype, g>(low, high);
  }
}

// The eight groups of 32 k.
template <DType dtype>
inline void unpack_eight(const uint8_t* low, const uint8_t* high, const BlockUnit& unit, int b, uint8_t (*codes)[64]) {
  store_u(codes[0], unpack_group<dtype, 0>(low, high, unit, b));
  store_u(codes[1], unpack_group<dtype, 1>(low, high, unit, b));
  store_u(codes[2], unpack_group<dtype, 2>(low, high, unit, b));
  store_u(codes[3], unpack_group<dtype, 3>(low, high, unit, b));
  store_u(codes[4], unpack_group<dtype, 4>(low, high, unit, b));
  store_u(codes[5], unpack_group<dtype, 5>(low, high, unit, b));
  store_u(codes[6], unpack_group<dtype, 6>(low, high, unit, b));
  store_u(codes[7], unpack_group<dtype, 7>(low, high, unit, b));
}

// codes: [n_k / 4]. unit: its header.
template <DType dtype, class Prefetcher>
inline void unpack_codes(const uint8_t* src, int n_k, const BlockUnit& unit, uint8_t (*codes)[64],
                         Prefetcher& prefetcher) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  const uint8_t* high = src + low_plane_bytes(f, n_k);
  for (int b = 0; b < n_k / 32; ++b) {
    unpack_eight<dtype>(src + 64 * f.low_bits * b, high + 64 * f.high_bits * b, unit, b, codes + 8 * b);
    prefetcher.step();
  }
}

// Pair p of the mins of Q4_K and Q5_K; bytes: pair p of the sub-scale bytes at s.
inline I32 min_pair_k45(const uint8_t* s, int p, I32 bytes) {
  const I32 nibbles = widen_u8_pairs(s + 32 * (4 + p % 2));
  const I32 low = and_i(p < 2 ? nibbles : shr_i<4>(nibbles), splat_i(0x000f000f));
  return or_i(and_i(shr_i<2>(bytes), splat_i(0x00300030)), low);
}

// scale: in the low half of each lane, above which it has zeros.
template <bool in_halves>
inline I32 scale_lanes(I32 scale) {
  return in_halves ? or_i(scale, shl_i<16>(scale)) : scale;
}

template <int bias_shift, bool in_halves>
inline void unpack_scales_k45(const uint8_t* s, BlockUnit& dst) {
  const I32 low_half = splat_i(0xffff);
  const I32 six = splat_i(0x003f003f);
  for (int p = 0; p < 4; ++p) {
    const I32 bytes = widen_u8_pairs(s + 32 * p);
    const I32 scales = and_i(bytes, six);
    store_i(dst.scales[2 * p], scale_lanes<in_halves>(and_i(scales, low_half)));
    store_i(dst.scales[2 * p + 1], scale_lanes<in_halves>(shr_i<16>(scales)));
    store_i(dst.bias_pairs[p], shl_i<bias_shift>(scales));
    store_i(dst.min_pairs[p], min_pair_k45(s, p, bytes));
  }
}

template <bool in_halves>
inline void unpack_scales_k2(const uint8_t* s, BlockUnit& dst) {
  int32_t mins[16][16];
  for (int j = 0; j < 16; ++j) {
    const I32 a = widen_u8(s + 16 * j);
    store_i(dst.scales[j], scale_lanes<in_halves>(and_i(a, splat_i(15))));
    store_i(mins[j], shr_i<4>(a));
  }
  for (int p = 0; p < 8; ++p) store_i(dst.min_pairs[p], or_i(load_i(mins[2 * p]), shl_i<16>(load_i(mins[2 * p + 1]))));
}

// Two bits of `from`, at 2 * part, above the four of `low`, less 32.
template <int part>
inline I32 six_bit_scale(I32 low, I32 from) {
  const I32 high = shl_i<4>(and_i(shr_i<2 * part>(from), splat_i(3)));
  return add_i(or_i(low, high), splat_i(-32));
}

template <bool in_halves>
inline void unpack_scales_k3(const uint8_t* s, BlockUnit& dst) {
  const I32 four = splat_i(15);
  const I32 low_half = splat_i(0xffff);  // madd16 wants the high half of a scale empty
  for (int j = 0; j < 4; ++j) {
    const I32 a = widen_u8(s + 16 * j);
    const I32 b = widen_u8(s + 16 * (j + 4));
    const I32 high = widen_u8(s + 16 * (j + 8));
    const I32 scales[4] = {six_bit_scale<0>(and_i(a, four), high), six_bit_scale<1>(and_i(b, four), high),
                           six_bit_scale<2>(shr_i<4>(a), high), six_bit_scale<3>(shr_i<4>(b), high)};
    for (int i = 0; i < 4; ++i) store_i(dst.scales[j + 4 * i], scale_lanes<in_halves>(and_i(low_half, scales[i])));
  }
}

inline void unpack_scales_iq4(const uint8_t* s, BlockUnit& dst) {
  const I32 four = splat_i(15);
  for (int j = 0; j < 2; ++j) {
    const I32 a = widen_u8(s + 16 * j);
    const I32 b = widen_u8(s + 16 * (j + 2));
    const I32 high = widen_u8(s + 16 * (j + 4));
    store_i(dst.scales[j], six_bit_scale<0>(and_i(a, four), high));
    store_i(dst.scales[j + 2], six_bit_scale<1>(and_i(b, four), high));
    store_i(dst.scales[j + 4], six_bit_scale<2>(shr_i<4>(a), high));
    store_i(dst.scales[j + 6], six_bit_scale<3>(shr_i<4>(b), high));
  }
}

// What rebase() takes, for bytes that are w8 + zero.
template <int zero>
inline void unpack_rebasing(const uint8_t* s, BlockUnit& dst) {
  for (int j = 0; j < 8; ++j) {
    const I32 a = widen_u8(s + 16 * j);
    const I32 both = or_i(a, shl_i<16>(a));
    store_i(dst.scales[j], shl_i<4>(both));
    store_i(dst.scales[8 + j], both);
    const I32 b = and_i(add_i(widen_u8(s + 16 * (8 + j)), splat_i(zero)), splat_i(0xff));
    const I32 two = or_i(b, shl_i<8>(b));
    store_i(dst.min_pairs[j], or_i(two, shl_i<16>(two)));
  }
}

template <DType dtype>
inline void unpack_sub_scales(const uint8_t* s, BlockUnit& dst) {
  using Traits = BlockTraits<dtype>;
  constexpr bool kInHalves = Traits::kInHalves;
  constexpr SubScales kSubScales = Traits::kPacked.sub_scales;
  if constexpr (kSubScales == SubScales::kMultipliers) unpack_rebasing<Traits::kOffset>(s, dst);
  if constexpr (kSubScales == SubScales::kSixBitPairs) unpack_scales_k45<Traits::kBiasShift, kInHalves>(s, dst);
  if constexpr (kSubScales == SubScales::kNibbles) unpack_scales_k2<kInHalves>(s, dst);
  if constexpr (kSubScales == SubScales::kSixBitsOf16) unpack_scales_k3<kInHalves>(s, dst);
  if constexpr (kSubScales == SubScales::kSixBitsOf8) unpack_scales_iq4(s, dst);
  if constexpr (kSubScales == SubScales::kOnes) {
    for (int j = 0; j < Traits::kPacked.n_groups; ++j) store_i(dst.scales[j], scale_lanes<kInHalves>(splat_i(1)));
  }
  if constexpr (kSubScales == SubScales::kBytes) {
    for (int j = 0; j < 16; ++j) {
      store_i(dst.scales[j], scale_lanes<kInHalves>(and_i(splat_i(0xffff), widen_i8(s + 16 * j))));
    }
  }
}

// 2^(e - 128), zero below 2^-126.
inline F32 exponent_scale(const uint8_t* e) {
  const I32 bits = shl_i<23>(max_i(add_i(widen_u8(e), splat_i(-1)), splat_i(0)));
  return bits_to_f32(bits);
}

template <DType dtype>
inline F32 load_d(const uint8_t* src, int b) {
  if constexpr (has_exponents(BlockTraits<dtype>::kPacked)) return exponent_scale(src + 16 * b);
  if constexpr (BlockTraits<dtype>::kIsRebased) return load(reinterpret_cast<const float*>(src));
  return load_f16(src + 32 * b);
}

// A unit's n of d, and of m where there are minima.
template <DType dtype>
inline void unpack_block_scales(const uint8_t* src, int n, float (*d)[16], float (*m)[16]) {
  for (int b = 0; b < n; ++b) {
    store(d[b], load_d<dtype>(src, b));
    if constexpr (BlockTraits<dtype>::kPacked.has_min) store(m[b], load_f16(src + 32 * (n + b)));
  }
}

// All but the codes.
template <DType dtype>
inline void unpack_header(const uint8_t* src, int n_k, BlockUnit& dst) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  unpack_block_scales<dtype>(src, f.is_super ? 1 : n_k / 32, dst.d, dst.m);
  if constexpr (f.is_super && f.has_min) store(dst.minus_m, mul(load(dst.m[0]), splat(-1.0f)));
  if constexpr (f.is_super) unpack_sub_scales<dtype>(src + scales_offset(f), dst);
}

template <DType dtype, class Prefetcher>
inline void unpack_unit(const uint8_t* src, int n_k, BlockUnit& dst, Prefetcher& prefetcher) {
  unpack_header<dtype>(src, n_k, dst);
  unpack_codes<dtype>(src + unit_header_bytes(BlockTraits<dtype>::kPacked, n_k), n_k, dst, dst.codes, prefetcher);
}
