// Weights of a super-block as exact int8 tiles: w = q * sub-scale is an integer of at most 13 bits, so 256 k of a row
// need one float operation sequence, not one for each sub-scale. Two planes, w = high << kShift + low; or one where w
// fits a byte: Q2_K, and Q3_K as -w (its (-4) * (-32) = 128 is common). Rebased weights are bytes as they are.
// Where q has no offset, the planes are q times the high and the low bits of the sub-scale: both products fit a byte,
// so that one multiplication of 16 bits makes two of them.

template <DType dtype>
struct SplitTraits {
  static constexpr bool kIsRebased = BlockTraits<dtype>::kIsRebased;
  static constexpr bool kIsPaired = dtype == DType::kQ2_K || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  static constexpr bool kIsNegated = dtype == DType::kQ3_K;
  static constexpr int kPlanes = dtype == DType::kQ2_K || kIsNegated || kIsRebased ? 1 : 2;
  static constexpr int kShift = kPlanes == 1 ? 0 : kIsPaired ? 3 : 7;
  static constexpr int kZero = BlockTraits<dtype>::kIsWide ? 128 : BlockTraits<dtype>::kPacked.offset;
};

// Four tiles of 64 k each for a plane, and what the float operations need; d and m of a lane carry the signs.
struct alignas(64) SuperTiles {
  uint8_t planes[2][kUnit / 4][64];  // low (or only) plane, high plane
  int32_t min_pairs[8][16];
  float d[16];        // of -w where the plane holds -w
  float minus_m[16];  // -dmin
};

// A sub-scale of each row in both halves of its lane, in parts where products of parts are paired.
struct SplitScale {
  __m512i low;
  __m512i high;
};

// both: a sub-scale twice in each lane.
template <DType dtype>
inline __attribute__((always_inline)) SplitScale split_scale(__m512i both) {
  using Split = SplitTraits<dtype>;
  if constexpr (!Split::kIsPaired || Split::kPlanes == 1) return {both, both};
  return {_mm512_and_si512(both, _mm512_set1_epi16((1 << Split::kShift) - 1)), _mm512_srli_epi16(both, Split::kShift)};
}

// Of a sub-scale in the low half of each lane, with the sign of the plane.
template <DType dtype>
inline __attribute__((always_inline)) __m512i scale_twice(const int32_t* scales) {
  const __m512i scale = _mm512_loadu_si512(scales);
  const __m512i both =
      _mm512_or_si512(_mm512_and_si512(scale, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(scale, 16));
  return SplitTraits<dtype>::kIsNegated ? _mm512_sub_epi16(_mm512_setzero_si512(), both) : both;
}

// 4 k of 16 rows.
template <DType dtype>
inline __attribute__((always_inline)) void split_group(U8 codes, SplitScale scale, int group, SuperTiles& dst) {
  using Split = SplitTraits<dtype>;
  const __m512i v = codes.v;
  if constexpr (Split::kIsPaired) {
    _mm512_store_si512(dst.planes[0][group], _mm512_mullo_epi16(v, scale.low));
    if constexpr (Split::kPlanes == 2) _mm512_store_si512(dst.planes[1][group], _mm512_mullo_epi16(v, scale.high));
    return;
  }
  const __m512i byte = _mm512_set1_epi16(0xff);
  const __m512i zero = _mm512_set1_epi16(Split::kZero);
  const __m512i even = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(v, byte), zero), scale.low);
  const __m512i odd = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(v, 8), zero), scale.low);
  const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaaull;
  if constexpr (Split::kPlanes == 1) {
    _mm512_store_si512(dst.planes[0][group], _mm512_mask_blend_epi8(odd_bytes, even, _mm512_slli_epi16(odd, 8)));
  } else {
    constexpr int kUp = 8 - Split::kShift;
    const __m512i low = _mm512_mask_blend_epi8(odd_bytes, even, _mm512_slli_epi16(odd, 8));
    const __m512i high =
        _mm512_mask_blend_epi8(odd_bytes, _mm512_srli_epi16(even, Split::kShift), _mm512_slli_epi16(odd, kUp));
    const __m512i low_bits = _mm512_set1_epi8((1 << Split::kShift) - 1);
    _mm512_store_si512(dst.planes[0][group], _mm512_and_si512(low, low_bits));
    _mm512_store_si512(dst.planes[1][group], high);
  }
}

// Group g of the eight that begin at 32 k's number b, and those after it. low, high: where their codes begin.
template <DType dtype, int g>
inline __attribute__((always_inline)) void split_eight(const uint8_t* low, const uint8_t* high, int b,
                                                       const SplitScale* scales, SuperTiles& dst) {
  constexpr int kPerScale = kUnit / 4 / BlockTraits<dtype>::kPacked.n_groups;
  split_group<dtype>(unpack_codes_group<dtype, g>(low, high), scales[g / kPerScale], 8 * b + g, dst);
  if constexpr (g < 7) split_eight<dtype, g + 1>(low, high, b, scales, dst);
}

// Q4_K and Q5_K, whose sub-scales stay in registers.
template <DType dtype, class Ahead>
inline void split_unit_k45(const uint8_t* src, SuperTiles& dst, Ahead& ahead) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  const uint8_t* scales = src + scales_offset(f);
  const uint8_t* low = src + unit_header_bytes(f, kUnit);
  const uint8_t* high = low + low_plane_bytes(f, kUnit);
  const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);  // their first bytes
  const __m512i first_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x01000100));
  const __m512i second_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x03020302));
  for (int p = 0; p < kUnit / 64; ++p) {
    const I32 bytes = widen_u8_pairs(scales + 32 * p);
    store_i(dst.min_pairs[p], min_pair_k45(scales, p, bytes));
    const __m512i six = _mm512_and_si512(bytes, _mm512_set1_epi16(63));
    const SplitScale pair[2] = {split_scale<dtype>(_mm512_shuffle_epi8(six, first_twice)),
                                split_scale<dtype>(_mm512_shuffle_epi8(six, second_twice))};
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const int b = 2 * p + i;
      split_eight<dtype, 0>(low + 64 * f.low_bits * b, high + 64 * f.high_bits * b, b, &pair[i], dst);
      ahead.step();
    }
  }
  store(dst.d, load_f16(src));
  store(dst.minus_m, mul(load_f16(src + 32), splat(-1.0f)));
}

// header: room for what unpacking takes.
template <DType dtype, class Ahead>
inline void split_unit(const uint8_t* src, BlockUnit& header, SuperTiles& dst, Ahead& ahead) {
  using Split = SplitTraits<dtype>;
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  constexpr int kScales = f.n_groups * 32 / kUnit;  // of 32 k
  unpack_header<dtype>(src, kUnit, header);
  const uint8_t* low = src + unit_header_bytes(f, kUnit);
  const uint8_t* high = low + low_plane_bytes(f, kUnit);
  for (int b = 0; b < kUnit / 32; ++b) {
    SplitScale scales[kScales];
#pragma GCC unroll 2
    for (int i = 0; i < kScales; ++i) {
      scales[i] = split_scale<dtype>(scale_twice<dtype>(header.scales[kScales * b + i]));
    }
    split_eight<dtype, 0>(low + 64 * f.low_bits * b, high + 64 * f.high_bits * b, b, scales, dst);
    ahead.step();
  }
  store(dst.d, mul(load(header.d[0]), splat(Split::kIsNegated ? -1.0f : 1.0f)));
  if constexpr (f.has_min) {
    store(dst.minus_m, load(header.minus_m));
    std::memcpy(dst.min_pairs, header.min_pairs, sizeof(int32_t) * 16 * f.n_groups / 2);
  }
}

template <DType dtype, class Ahead>
inline void rebase_unit(const uint8_t* src, BlockUnit& header, SuperTiles& dst, Ahead& ahead) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  unpack_rebasing<0>(src + scales_offset(f), header);
  unpack_codes<dtype>(src + unit_header_bytes(f, kUnit), kUnit, header, dst.planes[0], ahead);
  store(dst.d, load_d<dtype>(src, 0));
}
