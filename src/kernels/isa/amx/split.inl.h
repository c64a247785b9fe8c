// Weights of a super-block as exact int8 tiles: w = q * sub-scale is an integer of at most 13 bits, so 256 k of a row
// need one float operation sequence, not one for each sub-scale. Two planes, w = 128 * high + low, low in [0, 127]; or
// one where w fits a byte: Q2_K, and Q3_K as -w (its (-4) * (-32) = 128 is common). Rebased weights are bytes as they
// are.

template <DType dtype>
constexpr int kPlanes = dtype == DType::kQ2_K || dtype == DType::kQ3_K || BlockTraits<dtype>::kIsRebased ? 1 : 2;
constexpr int kPlaneShift = 7;

// Four tiles of 64 k each for a plane, and what the float operations need; d and m of a lane carry the signs.
struct alignas(64) SuperTiles {
  uint8_t planes[2][kUnit / 4][64];  // low (or only) plane, high plane
  int32_t min_pairs[8][16];
  float d[16];        // of -w where the plane holds -w
  float minus_m[16];  // -dmin
};

template <DType dtype>
inline void split_group(const uint8_t* codes, __m512i scale, uint8_t* low_plane, uint8_t* high_plane) {
  constexpr int kZero = BlockTraits<dtype>::kIsWide ? 128 : BlockTraits<dtype>::kPacked.offset;
  const __m512i v = _mm512_loadu_si512(codes);
  const __m512i byte = _mm512_set1_epi16(0xff);
  const __m512i zero = _mm512_set1_epi16(kZero);
  const __m512i even = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(v, byte), zero), scale);
  const __m512i odd = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_srli_epi16(v, 8), zero), scale);
  if constexpr (kPlanes<dtype> == 1) {
    const __m512i w = _mm512_or_si512(_mm512_and_si512(even, byte), _mm512_slli_epi16(odd, 8));
    _mm512_storeu_si512(low_plane, w);
  } else {
    const __m512i low_bits = _mm512_set1_epi16((1 << kPlaneShift) - 1);
    const __m512i low_even = _mm512_and_si512(even, low_bits);
    const __m512i low_odd = _mm512_slli_epi16(_mm512_and_si512(odd, low_bits), 8);
    const __m512i high_even = _mm512_and_si512(_mm512_srai_epi16(even, kPlaneShift), byte);
    const __m512i high_odd = _mm512_slli_epi16(_mm512_srai_epi16(odd, kPlaneShift), 8);
    _mm512_storeu_si512(low_plane, _mm512_or_si512(low_even, low_odd));
    _mm512_storeu_si512(high_plane, _mm512_or_si512(high_even, high_odd));
  }
}

template <DType dtype>
inline void split_unit(const BlockUnit& src, SuperTiles& dst) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  constexpr bool kIsNegated = dtype == DType::kQ3_K;
  constexpr int kGroups = kUnit / 4 / f.n_groups;  // groups of 4 k under one sub-scale
  for (int j = 0; j < f.n_groups; ++j) {
    const __m512i scale = _mm512_and_si512(_mm512_loadu_si512(src.scales[j]), _mm512_set1_epi32(0xffff));
    __m512i both = _mm512_or_si512(scale, _mm512_slli_epi32(scale, 16));
    if constexpr (kIsNegated) both = _mm512_sub_epi16(_mm512_setzero_si512(), both);
    for (int g = j * kGroups; g < (j + 1) * kGroups; ++g) {
      split_group<dtype>(src.codes[g], both, dst.planes[0][g], dst.planes[1][g]);
    }
  }
  store(dst.d, mul(load(src.d[0]), splat(kIsNegated ? -1.0f : 1.0f)));
  if constexpr (f.has_min) {
    store(dst.minus_m, mul(load(src.m[0]), splat(-1.0f)));
    std::memcpy(dst.min_pairs, src.min_pairs, sizeof(int32_t) * 16 * f.n_groups / 2);
  }
}

// header: room for what rebasing takes.
template <DType dtype, class Ahead>
inline void rebase_unit(const uint8_t* src, BlockUnit& header, SuperTiles& dst, Ahead& ahead) {
  constexpr PackedFormat f = BlockTraits<dtype>::kPacked;
  unpack_rebasing<0>(src + scales_offset(f), header);
  unpack_codes<dtype>(src + unit_header_bytes(f, kUnit), kUnit, header, dst.planes[0], ahead);
  store(dst.d, load_d<dtype>(src, 0));
}
