// The activations that a tile needs at one unit, transposed: k outside, rows inside, so that one pointer serves any
// number of rows. Arrays are written in the order of their addresses, 16 lanes at a time: what a store writes past the
// n lanes of its line belongs to the lines that are written after it.

// Where an encoded row's parts begin (packed_weight.h), and the next row.
struct RowLayout {
  size_t stride;
  size_t sums;
  size_t scales;

  RowLayout(DType dtype, int64_t n_in) {
    const Encoding encoding = encoding_of(dtype);
    stride = encoded_row_bytes(encoding, n_in);
    sums = encoded_sums_offset(encoding, n_in);
    scales = encoded_scales_offset(encoding, n_in);
  }
};

// Whether a chunk of n_rows finds prepared what it needs: it is the call's only one, as it was the last call's.
inline bool is_prepared(const MatmulArgs& a, int32_t n_rows) {
  return a.follows_its_like && n_rows == a.n_rows;
}

inline int32_t pair_of(int low, int high) {
  return static_cast<int32_t>((static_cast<uint32_t>(high) << 16) | (static_cast<uint32_t>(low) & 0xffffu));
}

// dst[w][r] = word w of row r.
template <int n>
inline void transpose_words(const std::byte* const* rows, int n_words, int32_t (*dst)[n]) {
  int w = 0;
  if constexpr (n == 4) {
    for (; w + 16 <= n_words; w += 16) {
      I32 block[4];
#pragma GCC unroll 4
      for (int r = 0; r < 4; ++r) block[r] = load_i(reinterpret_cast<const int32_t*>(rows[r] + 4 * w));
      store_interleaved(dst[w], block);
    }
  } else if constexpr (n > 2) {
    for (; w + 16 <= n_words; w += 16) {
      I32 block[16];
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) {
        block[r] = r < n ? load_i(reinterpret_cast<const int32_t*>(rows[r] + 4 * w)) : splat_i(0);
      }
      transpose_16(block);
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) store_i(dst[w + i], block[i]);
    }
  }
  for (; w < n_words; ++w) {
    for (int r = 0; r < n; ++r) std::memcpy(&dst[w][r], rows[r] + 4 * w, 4);
  }
}

template <DType dtype, int n>
struct BlockRowTile {
  using Traits = BlockTraits<dtype>;
  static constexpr PackedFormat kPacked = Traits::kPacked;
  using Plan = DotPlan<dtype, false>;
  static constexpr int kDots = kPacked.is_super ? Plan::kDots : kUnit / 32;
  static constexpr bool kMayHaveSmallSums = Traits::kHasSmallSums && n >= kTileRows;
  static constexpr int kPairs = kPacked.is_super ? kPacked.n_groups / 2 : 1;

  int32_t codes[kUnit / 4][n];                                  // four k
  int32_t starts[kDots][n];                                     // of the dots: -offset * sum of x; rebased: of all
  int32_t pairs[kPairs][n];                                     // super-blocks: sums of x of two sub-scale groups
  float sums[!kPacked.is_super && kPacked.has_min ? 8 : 1][n];  // 32-blocks: sums of x
  float scales[kPacked.is_super ? 1 : 8][n];
  bool has_small_sums;  // of |x|, in all rows: DotPlan<dtype, true> holds
  int32_t past_end[16];

  // rows: [n] encoded rows; k: where the unit begins.
  void prepare(const std::byte* const* rows, const RowLayout& layout, int64_t k, int n_k) {
    const std::byte* at[n];
    for (int r = 0; r < n; ++r) at[r] = rows[r] + k;
    transpose_words<n>(at, n_k / 4, codes);
    if constexpr (kPacked.is_super) {
      prepare_super(rows, layout, k);
    } else {
      prepare_32(rows, layout, k, n_k);
    }
  }

  void prepare_super(const std::byte* const* rows, const RowLayout& layout, int64_t k) {
    int32_t words[8][16] = {};  // sums of x over 16 k, two each
    const std::byte* at[n];
    for (int r = 0; r < n; ++r) at[r] = rows[r] + layout.sums + k / 8;
    transpose_sums(at, words);
    bool small_sums = false;
    if constexpr (kMayHaveSmallSums) {
      small_sums = find_small_sums(words);
      if (small_sums) prepare_starts<DotPlan<dtype, true>>(words);
    }
    if (!small_sums) prepare_starts<Plan>(words);
    for (int p = 0; p < kPairs; ++p) {
      if constexpr (kPacked.n_groups == 16) {
        store_i(pairs[p], load_i(words[p]));
      } else {
        const I32 low = dot2(splat_i(0), load_i(words[2 * p]), pair_of(1, 1));
        const I32 high = dot2(splat_i(0), load_i(words[2 * p + 1]), pair_of(1, 1));
        store_i(pairs[p], or_i(and_i(low, splat_i(0xffff)), shl_i<16>(high)));
      }
    }
    for (int r = 0; r < n; ++r) {
      std::memcpy(&scales[0][r], rows[r] + layout.scales + k / kUnit * 4, 4);
    }
    has_small_sums = small_sums;
  }

  // rows: of 8 words each; what follows them in the row may be read too.
  static void transpose_sums(const std::byte* const* rows, int32_t (*words)[16]) {
    if constexpr (n > 4) {
      I32 block[16];
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) block[r] = r < n ? load_i(reinterpret_cast<const int32_t*>(rows[r])) : splat_i(0);
      transpose_16(block);
#pragma GCC unroll 8
      for (int w = 0; w < 8; ++w) store_i(words[w], block[w]);
    } else {
      for (int r = 0; r < n; ++r) {
        for (int w = 0; w < 8; ++w) std::memcpy(&words[w][r], rows[r] + 4 * w, 4);
      }
    }
  }

  bool find_small_sums(const int32_t (*words)[16]) const {
    using Small = DotPlan<dtype, true>;
    constexpr int8_t kOnes[4] = {1, 1, 1, 1};
    I32 dots[Small::kDots];
#pragma GCC unroll 16
    for (int j = 0; j < Small::kDots; ++j) dots[j] = splat_i(0);
    for (int g = 0; g < Small::kGroups; ++g) {
#pragma GCC unroll 16
      for (int j = 0; j < Small::kDots; ++j) {
        const U8 x = abs_u(load_u(reinterpret_cast<const uint8_t*>(codes[j * Small::kGroups + g])));
        dots[j] = dot4<false>(dots[j], x, kOnes);
      }
    }
    I32 largest = splat_i(0);
#pragma GCC unroll 16
    for (int j = 0; j < Small::kDots; ++j) largest = max_i(largest, largest_part<Small>(dots[j], words, j));
    int32_t lanes[16];
    store_i(lanes, largest);
    bool is_within = true;
    for (int r = 0; r < n; ++r) is_within = is_within && lanes[r] <= Small::kMostSum;
    return is_within;
  }

  // Of dot j, whose sum of |x| is given: unsigned codes meet the positive x or the negative ones.
  template <class Small>
  static I32 largest_part(I32 sum, const int32_t (*words)[16], int j) {
    if constexpr (Small::kOffset != 0) return sum;
    const I32 up = dot2(sum, load_i(words[j]), pair_of(1, 1));
    const I32 down = dot2(sum, load_i(words[j]), pair_of(-1, -1));
    return shr_i<1>(max_i(up, down));
  }

  template <class Dots>
  void prepare_starts(const int32_t (*words)[16]) {
    constexpr int kOffset = Dots::kOffset;
    if constexpr (kOffset == 0) return;
    if constexpr (Traits::kIsRebased) {
      I32 start = splat_i(0);
      for (int w = 0; w < 8; ++w) start = dot2(start, load_i(words[w]), pair_of(-kOffset, -kOffset));
      store_i(starts[0], start);
      return;
    }
    for (int j = 0; j < Dots::kDots; ++j) {
      if constexpr (Traits::kInHalves) {
        store_i(starts[j], start_in_halves<Dots::kGroups>(j));
      } else if constexpr (Dots::kGroups == 2) {
        store_i(starts[j], mul_i(sum_of_eight(j), splat_i(-kOffset)));
      } else if constexpr (Dots::kGroups == 4) {
        const int32_t pair = j % 2 == 0 ? pair_of(-kOffset, 0) : pair_of(0, -kOffset);
        store_i(starts[j], dot2(splat_i(0), load_i(words[j / 2]), pair));
      } else {
        store_i(starts[j], dot2(splat_i(0), load_i(words[j]), pair_of(-kOffset, -kOffset)));
      }
    }
  }

  // Of dot j.
  template <int n_groups>
  I32 start_in_halves(int j) const {
    constexpr int8_t kOffsets[4] = {-Traits::kOffset, -Traits::kOffset, -Traits::kOffset, -Traits::kOffset};
    I32 sum = splat_i(0);
    for (int g = n_groups * j; g < n_groups * (j + 1); ++g) {
      sum = dot4<true, true>(sum, load_u(reinterpret_cast<const uint8_t*>(codes[g])), kOffsets);
    }
    return sum;
  }

  // Of the codes of dot j.
  I32 sum_of_eight(int j) const {
    constexpr int8_t kOnes[4] = {1, 1, 1, 1};
    I32 sum = splat_i(kDotIsSigned ? 0 : -8 * 128);
    for (int g = 2 * j; g < 2 * j + 2; ++g) {
      const U8 x = load_u(reinterpret_cast<const uint8_t*>(codes[g]));
      sum = dot4<true>(sum, kDotIsSigned ? x : flip_sign_u(x), kOnes);
    }
    return sum;
  }

  void prepare_32(const std::byte* const* rows, const RowLayout& layout, int64_t k, int n_k) {
    const int n_blocks = n_k / 32;
    int32_t block_sums[8][16] = {};
    for (int r = 0; r < n; ++r) {
      const auto* from = reinterpret_cast<const int16_t*>(rows[r] + layout.sums) + k / 32;
      for (int b = 0; b < n_blocks; ++b) block_sums[b][r] = from[b];
    }
    for (int b = 0; b < n_blocks; ++b) {
      if constexpr (Traits::kInHalves) {
        store_i(starts[b], start_in_halves<8>(b));
      } else {
        store_i(starts[b], mul_i(load_i(block_sums[b]), splat_i(-Traits::kOffset)));
      }
    }
    if constexpr (kPacked.has_min) {
      for (int b = 0; b < n_blocks; ++b) store(sums[b], to_f32(load_i(block_sums[b])));
    }
    for (int r = 0; r < n; ++r) {
      const std::byte* from = rows[r] + layout.scales + k / 8;
      for (int b = 0; b < n_blocks; ++b) std::memcpy(&scales[b][r], from + 4 * b, 4);
    }
  }
};
