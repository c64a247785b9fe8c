// Weights of a super-block as exact int8 tiles: w = q * sub-scale is an integer of at most 13 bits, so 256 k of a row
// need one float operation sequence, not one for each sub-scale. Two planes, w = high << kShift + low; or one where w
// fits a byte: Q2_K, and Q3_K as -w (its (-4) * (-32) = 128 is common). Rebased weights are bytes as they are.
// Where q has no offset, the planes are q times the high and the low bits of the sub-scale: both products fit a byte,
// so that one multiplication of 16 bits makes two of them. Else they are the bytes of w, the low one unsigned.

template <DType dtype>
struct SplitTraits {
  static constexpr bool kIsRebased = BlockTraits<dtype>::kIsRebased;
  static constexpr bool kIsPaired = dtype == DType::kQ2_K || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  static constexpr bool kIsNegated = dtype == DType::kQ3_K;
  static constexpr int kPlanes = dtype == DType::kQ2_K || kIsNegated || kIsRebased ? 1 : 2;
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
inline __attribute__((always_inline)) SplitScale split_scale(__m512i both) {
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
inline __attribute__((always_inline)) __m512i scale_twice(const int32_t* scales) {
  const __m512i scale = _mm512_loadu_si512(scales);
  const __m512i both =
      _mm512_or_si512(_mm512_and_si512(scale, _mm512_set1_epi32(0xffff)), _mm512_slli_epi32(scale, 16));
  return SplitTraits<dtype>::kIsNegated ? _mm512_sub_epi16(_mm512_setzero_si512(), both) : both;
}

// 4 k of 16 rows.
template <DType dtype>
inline __attribute__((always_inline)) void split_group(U8 codes, const SplitScale& scale, int group, SuperPlanes& dst) {
  using Split = SplitTraits<dtype>;
  const __m512i v = codes.v;
  if constexpr (Split::kIsPaired) {
    _mm512_store_si512(dst.codes[0][group], _mm512_mullo_epi16(v, scale.first));
    if constexpr (Split::kPlanes == 2) _mm512_store_si512(dst.codes[1][group], _mm512_mullo_epi16(v, scale.second));
    return;
  }
  const __m512i even = _mm512_sub_epi16(_mm512_maddubs_epi16(v, scale.first), scale.bias);
  const __m512i odd = _mm512_sub_epi16(_mm512_maddubs_epi16(v, scale.second), scale.bias);
  const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaaull;
  _mm512_store_si512(dst.codes[0][group], _mm512_mask_blend_epi8(odd_bytes, even, _mm512_slli_epi16(odd, 8)));
  if constexpr (Split::kPlanes == 2) {
    _mm512_store_si512(dst.codes[1][group], _mm512_mask_blend_epi8(odd_bytes, _mm512_srli_epi16(even, 8), odd));
  }
}

// Group g of the eight that begin at 32 k's number b, and those after it. low, high: where their codes begin.
template <DType dtype, int g>
inline __attribute__((always_inline)) void split_eight(const uint8_t* low, const uint8_t* high, int b,
                                                       const SplitScale* scales, SuperPlanes& dst) {
  constexpr int kPerScale = kUnit / 4 / BlockTraits<dtype>::kPacked.n_groups;
  split_group<dtype>(unpack_codes_group<dtype, g>(low, high), scales[g / kPerScale], 8 * b + g, dst);
  if constexpr (g < 7) split_eight<dtype, g + 1>(low, high, b, scales, dst);
}

// A unit of a panel on its way into tiles, 64 k at a step, so that the tile operations of another run beside it.
template <DType dtype>
class SuperSplit {
 public:
  static constexpr size_t kUnitBytes = unit_bytes(BlockTraits<dtype>::kPacked, kUnit);
  using Ahead = LinesAhead<ahead_lines(kUnitBytes, 2 * kTileSteps), true>;

  SuperSplit() = default;
  // next: what is asked for meanwhile. header: room for what unpacking takes, of one unit at a time.
  SuperSplit(const uint8_t* src, const uint8_t* next, BlockUnit& header, SuperPlanes& planes, SuperFloats& floats)
      : src_(src), ahead_(next, kUnitBytes, 1, 0, 1), header_(&header), planes_(&planes), floats_(&floats), next_(0) {}

  bool is_done() const { return next_ == kTileSteps; }
  // REQUIRES: not done.
  inline __attribute__((always_inline)) void step() {
    if constexpr (kIsK45) {
      if (next_ == 0) split_floats_k45();
      split_k45(next_);
    } else if constexpr (Split::kIsRebased) {
      if (next_ == 0) split_floats_rebased();
      rebase_32(2 * next_);
      rebase_32(2 * next_ + 1);
    } else {
      if (next_ == 0) split_floats();
      split_32(2 * next_);
      split_32(2 * next_ + 1);
    }
    ++next_;
  }
  void all() {
    while (!is_done()) step();
  }

 private:
  using Split = SplitTraits<dtype>;
  static constexpr PackedFormat kPacked = BlockTraits<dtype>::kPacked;
  static constexpr bool kIsK45 = dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  static constexpr int kScales = kPacked.n_groups * 32 / kUnit;  // of 32 k

  const uint8_t* scales() const { return src_ + scales_offset(kPacked); }
  const uint8_t* low() const { return src_ + unit_header_bytes(kPacked, kUnit); }
  const uint8_t* high() const { return low() + low_plane_bytes(kPacked, kUnit); }

  inline __attribute__((always_inline)) void split_codes(int b, const SplitScale* scales) {
    split_eight<dtype, 0>(low() + 64 * kPacked.low_bits * b, high() + 64 * kPacked.high_bits * b, b, scales, *planes_);
    ahead_.step();
  }

  // Q4_K and Q5_K, whose sub-scales stay in registers.
  inline __attribute__((always_inline)) void split_k45(int p) {
    const __m512i lanes = _mm512_set4_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0);  // their first bytes
    const __m512i first_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x01000100));
    const __m512i second_twice = _mm512_add_epi8(lanes, _mm512_set1_epi32(0x03020302));
    const I32 bytes = widen_u8_pairs(scales() + 32 * p);
    store_i(floats_->min_pairs[p], min_pair_k45(scales(), p, bytes));
    const __m512i six = _mm512_and_si512(bytes, _mm512_set1_epi16(63));
    const SplitScale first = split_scale<dtype>(_mm512_shuffle_epi8(six, first_twice));
    split_codes(2 * p, &first);
    const SplitScale second = split_scale<dtype>(_mm512_shuffle_epi8(six, second_twice));
    split_codes(2 * p + 1, &second);
  }
  void split_floats_k45() {
    store(floats_->d, load_f16(src_));
    store(floats_->minus_m, mul(load_f16(src_ + 32), splat(-1.0f)));
  }

  inline __attribute__((always_inline)) void split_32(int b) {
    SplitScale parts[kScales];
#pragma GCC unroll 2
    for (int i = 0; i < kScales; ++i) {
      parts[i] = split_scale<dtype>(scale_twice<dtype>(header_->scales[kScales * b + i]));
    }
    split_codes(b, parts);
  }
  void split_floats() {
    unpack_header<dtype>(src_, kUnit, *header_);
    store(floats_->d, mul(load(header_->d[0]), splat(Split::kIsNegated ? -1.0f : 1.0f)));
    if constexpr (kPacked.has_min) {
      store(floats_->minus_m, load(header_->minus_m));
      std::memcpy(floats_->min_pairs, header_->min_pairs, sizeof(int32_t) * 16 * kPacked.n_groups / 2);
    }
  }

  inline __attribute__((always_inline)) void rebase_32(int b) {
    unpack_eight<dtype, 0>(low() + 64 * kPacked.low_bits * b, high(), *header_, b, planes_->codes[0]);
    ahead_.step();
  }
  void split_floats_rebased() {
    unpack_rebasing<0>(scales(), *header_);
    store(floats_->d, load_d<dtype>(src_, 0));
  }

  const uint8_t* src_ = nullptr;
  Ahead ahead_{nullptr, 0, 1, 0, 1};
  BlockUnit* header_ = nullptr;
  SuperPlanes* planes_ = nullptr;
  SuperFloats* floats_ = nullptr;
  int next_ = kTileSteps;
};
