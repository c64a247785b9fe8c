// Weights of a super-block as exact int8 tiles: w = q * sub-scale is an integer of at most 13 bits, so 256 k of a row
// need one float operation sequence, not one for each sub-scale. Two planes, w = high << kShift + low; or one where w
// fits a byte: Q2_K, and Q3_K as -w (its (-4) * (-32) = 128 is common). Rebased weights are bytes as they are.
// Where q has no offset, the planes are q times the high and the low bits of the sub-scale: both products fit a byte,
// so that one multiplication of 16 bits makes two of them. Else they are the bytes of w, the low one unsigned.

template <DType dtype>
struct SplitTraits {
  static constexpr bool kIsRebased = BlockTraits<dtype>::kIsRebased;
  static constexpr bool kIsPaired = BlockTraits<dtype>::kPacked.has_min;
  static constexpr bool kIsNegated = dtype == DType::kQ3_K;
  static constexpr bool kIsByte = dtype == DType::kQ2_K || kIsNegated || kIsRebased || BlockTraits<dtype>::kHasOneScale;
  static constexpr int kPlanes = kIsByte ? 1 : 2;
  static constexpr int kShift = kPlanes == 1 ? 0 : kIsPaired ? 3 : 8;
  static constexpr int kZero = BlockTraits<dtype>::kIsWide ? 128 : BlockTraits<dtype>::kPacked.offset;
  static constexpr bool kLowIsUnsigned = kIsPaired || kPlanes == 2;
};

constexpr int kTileSteps = kUnit / 64;  // tiles of 64 k of a unit; its work is cut into as many pieces

// Four tiles of 64 k each for a plane: the low (or only) one, the high one.
struct alignas(64) SuperPlanes {
  uint8_t codes[2][kUnit / 4][64];
};

// What the float operations of a unit need; d and m of a lane carry the signs.
struct alignas(64) SuperFloats {
  int32_t min_pairs[8][16];
  float d[16];        // of -w where the plane holds -w
  float minus_m[16];  // -dmin
};

// A sub-scale of each row, for split_group. Paired: its low and its high bits, in both halves of the row's lane; else
// the sub-scale as an int8 that meets the even codes, one that meets the odd ones, and what kZero adds to a product.
struct SplitScale {
  __m512i first;
  __m512i second;
  __m512i bias;
};

// both: a sub-scale twice in each lane, with the sign of the plane.
template <DType dtype>
CANDOR_INLINE SplitScale split_scale(__m512i both) {
  using Split = SplitTraits<dtype>;
  if constexpr (Split::kIsPaired) {
    if constexpr (Split::kPlanes == 1) return {both, both, both};
    const __m512i low_bits = _mm512_set1_epi16((1 << Split::kShift) - 1);
    return {_mm512_and_si512(both, low_bits), _mm512_srli_epi16(both, Split::kShift), both};
  }
  return {_mm512_and_si512(both, _mm512_set1_epi16(0xff)), _mm512_slli_epi16(both, 8),
          _mm512_mullo_epi16(both, _mm512_set1_epi16(Split::kZero))};
}

// Of a sub-scale in the low half of each lane, with the sign of the plane.
template <DType dtype>
CANDOR_INLINE __m512i scale_twice(const int32_t* scales) {
  const __m512i scale = _mm512_loadu_si512(scales);
  const __m512i both =
      _mm512_or_si512(_mm512_and_si512(scale, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(scale, 16));
  return SplitTraits<dtype>::kIsNegated ? _mm512_sub_epi16(_mm512_setzero_si512(), both) : both;
}

// 4 k of 16 rows.
template <DType dtype>
CANDOR_INLINE void split_group(U8 codes, const SplitScale& scale, int group, SuperPlanes& dst) {
  using Split = SplitTraits<dtype>;
  const __m512i v = codes.v;
  if constexpr (Split::kIsPaired) {
    _mm512_store_si512(dst.codes[0][group], _mm512_mullo_epi16(v, scale.first));
    if constexpr (Split::kPlanes == 2) _mm512_store_si512(dst.codes[1][group], _mm512_mullo_epi16(v, scale.second));
    return;
  }
  const __m512i even = _mm512_sub_epi16(_mm512_maddubs_epi16(v, scale.first), scale.bias);
  const __m512i odd = _mm512_sub_epi16(_mm512_maddubs_epi16(v, scale.second), scale.bias);
  const __m512i neighbours = _mm512_broadcast_i32x4(_mm_set_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
  const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaaull;
  _mm512_store_si512(dst.codes[0][group], _mm512_mask_shuffle_epi8(even, odd_bytes, odd, neighbours));
  if constexpr (Split::kPlanes == 2) {
    _mm512_store_si512(dst.codes[1][group], _mm512_mask_shuffle_epi8(odd, ~odd_bytes, even, neighbours));
  }
}

// A unit of a panel on its way into tiles, a few groups of 4 k at a time, so that they are made beside the tile
// operations of another unit. The parts of 64 k come in ascending order.
template <DType dtype>
class SuperSplit {
 public:
  static constexpr size_t kUnitBytes = unit_bytes(BlockTraits<dtype>::kPacked, kUnit);
  static constexpr int kScales = BlockTraits<dtype>::kPacked.n_groups / kTileSteps;  // of 64 k
  static constexpr int kGroups = kUnit / 4 / kTileSteps;

  // below: what is prefetched meanwhile. header: room for what unpacking takes, of one unit at a time.
  SuperSplit(const uint8_t* src, const uint8_t* below, BlockUnit& header, SuperPlanes& planes, SuperFloats& floats)
      : src_(src), below_(below), header_(header), planes_(planes), floats_(floats) {}

  // Begins part i.
  CANDOR_INLINE void begin(int i) {
    part_ = i;
    if constexpr (kIsK45) {
      if (i == 0) take_floats_k45();
      take_scales_k45();
    } else {
      if (i == 0) take_floats();
      if constexpr (!Split::kIsRebased) take_scales();
    }
  }
  // Its group g of kGroups; they come in ascending order too.
  template <int g>
  CANDOR_INLINE void group() {
    prefetch_lines_of<g * kLines / kGroups, (g + 1) * kLines / kGroups>();
    const int b = 2 * part_ + g / 8;
    const uint8_t* planes = src_ + unit_header_bytes(kPacked, kUnit);
    const uint8_t* low = planes + 64 * kPacked.low_bits * b;
    const uint8_t* high = planes + low_plane_bytes(kPacked, kUnit) + 64 * kPacked.high_bits * b;
    const int at = kGroups * part_ + g;
    if constexpr (Split::kIsRebased) {
      store_u(planes_.codes[0][at], unpack_group<dtype, g % 8>(low, high, header_, b));
    } else {
      split_group<dtype>(unpack_codes_group<dtype, g % 8>(low, high), scales_[g * kScales / kGroups], at, planes_);
    }
  }

  void all() {
    for (int i = 0; i < kTileSteps; ++i) {
      begin(i);
      all_groups(std::make_integer_sequence<int, kGroups>{});
    }
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr bool kIsK45 = kPacked.sub_scales == SubScales::kSixBitPairs;
  static constexpr int kLines = prefetch_lines(kUnitBytes, kTileSteps);

  const uint8_t* sub_scales() const { return src_ + scales_offset(kPacked); }

  template <int... g>
  CANDOR_INLINE void all_groups(std::integer_sequence<int, g...>) {
    (group<g>(), ...);
  }

  // Of a part, into the second-level cache, which can wait for more of them at once.
  template <int first, int end>
  CANDOR_INLINE void prefetch_lines_of() const {
#pragma GCC unroll 4
    for (int k = first; k < end; ++k) prefetch_far(below_ + kLineBytes * static_cast<size_t>(kLines * part_ + k));
  }

  // Q4_K and Q5_K, whose sub-scales stay in registers.
  CANDOR_INLINE void take_scales_k45() {
    const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);  // their first bytes
    const __m512i first_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x01000100));
    const __m512i second_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x03020302));
    const I32 bytes = widen_u8_pairs(sub_scales() + 32 * part_);
    store_i(floats_.min_pairs[part_], min_pair_k45(sub_scales(), part_, bytes));
    const __m512i six = _mm512_and_si512(bytes, _mm512_set1_epi16(63));
    scales_[0] = split_scale<dtype>(_mm512_shuffle_epi8(six, first_twice));
    scales_[1] = split_scale<dtype>(_mm512_shuffle_epi8(six, second_twice));
  }
  void take_floats_k45() const {
    store(floats_.d, load_f16(src_));
    store(floats_.minus_m, mul(load_f16(src_ + 32), splat(-1.0f)));
  }

  CANDOR_INLINE void take_scales() {
#pragma GCC unroll 4
    for (int j = 0; j < kScales; ++j) {
      scales_[j] = split_scale<dtype>(scale_twice<dtype>(header_.scales[kScales * part_ + j]));
    }
  }
  void take_floats() const {
    if constexpr (Split::kIsRebased) {
      unpack_rebasing<0>(sub_scales(), header_);
      store(floats_.d, load_d<dtype>(src_, 0));
      return;
    }
    unpack_header<dtype>(src_, kUnit, header_);
    store(floats_.d, mul(load(header_.d[0]), splat(Split::kIsNegated ? -1.0f : 1.0f)));
    if constexpr (kPacked.has_min) {
      store(floats_.minus_m, load(header_.minus_m));
      std::memcpy(floats_.min_pairs, header_.min_pairs, sizeof(int32_t) * 16 * kPacked.n_groups / 2);
    }
  }

  const uint8_t* src_;
  const uint8_t* below_;
  BlockUnit& header_;
  SuperPlanes& planes_;
  SuperFloats& floats_;
  int part_ = 0;
  SplitScale scales_[kScales];
};
