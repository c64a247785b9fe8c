// Products with BF16, FP8 and FP4 weights by VDPBF16PS, two k an instruction. It adds the product of the odd bf16 of a
// lane, then that of the even one, each by an fma with denormals as zeros. So a lane gets k and k + 2, or k + 1 and k +
// 3, the first one above, and two accumulators are the two chains of TDPBF16PS (docs/numerics.md):
//
//   word 2 g      x[4 g + 2], x[4 g]           the even chain
//   word 2 g + 1  x[4 g + 3], x[4 g + 1]       the odd chain
//
// For a few rows, which wait for memory, the lanes of avx512vnni are as quick.

constexpr int kPairDepth = 128;
constexpr int kPairStep = 32;  // k of a chain
constexpr int32_t kLeastPairRows = 4;

struct alignas(64) PairUnit {
  int32_t w[kPairDepth / 2][16];
  float d[16];
};

// Both are bf16, as f32.
CANDOR_INLINE I32 pair_words(F32 first, F32 second) {
  return or_i(f32_to_bits(first), shr_i<16>(f32_to_bits(second)));
}

// The words of four k of 16 lanes.
struct FourWords {
  I32 even;
  I32 odd;
};

// at: two words of pairs.
CANDOR_INLINE FourWords words_of_pairs(const int32_t* at) {
  const I32 first = load_i(at);
  const I32 second = load_i(at + 16);
  constexpr int kOrAnd = 0xf8;  // a | (b & c)
  const I32 low = splat_i(0x0000ffff);
  const I32 high = splat_i(static_cast<int32_t>(0xffff0000u));
  return {_mm512_ternarylogic_epi32(_mm512_slli_epi32(first, 16), second, low, kOrAnd),
          _mm512_ternarylogic_epi32(_mm512_srli_epi32(second, 16), first, high, kOrAnd)};
}

// The words of 16 numbers that are bf16, kept as f32; in the first two lanes of each four.
CANDOR_INLINE I32 words_in_fours(F32 row) {
  const I32 bits = f32_to_bits(row);
  return or_i(bits, _mm512_srli_epi32(_mm512_shuffle_epi32(bits, _MM_PERM_DCDC), 16));
}
CANDOR_INLINE I32 words_of_row(F32 low, F32 high) {
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  return _mm512_permutex2var_epi64(words_in_fours(low), order, words_in_fours(high));
}

// acc + high(w) * high(x), then + low(w) * low(x).
CANDOR_INLINE F32 dot_pairs(F32 acc, I32 w, I32 x) {
  __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(w), "v"(x));
  return acc;
}

// The rows of a tile at a unit.
template <int n>
struct PairRowTile {
  int32_t words[n][kPairDepth / 2];

  // encoded: rounded to bf16, as f32.
  void prepare(const std::byte* const* encoded, const RowLayout&, int64_t k, int n_k) {
    for (int r = 0; r < n; ++r) {
      const auto* x = reinterpret_cast<const float*>(encoded[r]) + k;
      for (int i = 0; i < n_k; i += 16) {
        const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 0, 0, 0, 0);
        const __m512i eight = _mm512_permutexvar_epi64(order, words_in_fours(load(x + i)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(words[r] + i / 2), _mm512_castsi512_si256(eight));
      }
    }
  }
};

// Codes: of blocks of floats; void of BF16.
template <class Codes>
struct PairProduct {
  using Unit = PairUnit;
  template <int n>
  using RowTile = PairRowTile<n>;
  static constexpr bool kHasScales = !std::is_void_v<Codes>;
  static constexpr int kDepth = kPairDepth;
  static constexpr int kPanels = kDotPanels;
  static constexpr int kRows = kTileRowsBf16;
  static constexpr int kReadTiles = 0;  // that take the weights as they are packed
  static constexpr int kPrefetchSteps = kDepth / kPairStep;
  static constexpr size_t kStreamAhead = kStreamAheadOfBytes;

  static constexpr int panels_of(int) { return kPanels; }
  static constexpr size_t bytes_of_unit(int n_k) {
    if constexpr (kHasScales) return Codes::kFormat.unit_bytes();
    return static_cast<size_t>(n_k) * 2 * kPanelRows;
  }

  // Of kUnpackStep k.
  static constexpr int kUnpackStep = kHasScales ? 16 : 4;
  static CANDOR_INLINE void unpack_step(const uint8_t* src, int k, int32_t (*w)[16]) {
    if constexpr (kHasScales) {
      const Codes codes = Codes::group(src, k);
      for (int j = 0; j < kUnpackStep; j += 4) {
        store_i(w[j / 2], pair_words(codes.even(j), codes.even(j + 2)));
        store_i(w[j / 2 + 1], pair_words(codes.odd(j), codes.odd(j + 2)));
      }
    } else {
      const FourWords four = words_of_pairs(reinterpret_cast<const int32_t*>(src) + kPanelRows / 2 * k);
      store_i(w[0], four.even);
      store_i(w[1], four.odd);
    }
  }

  template <class Prefetcher>
  static const Unit* unpack(const uint8_t* src, size_t apart, int n_k, int64_t n_panels, Unit* units,
                            Prefetcher& prefetcher) {
    for (int64_t p = 0; p < n_panels; ++p) {
      const uint8_t* panel = src + static_cast<size_t>(p) * apart;
      for (int k = 0; k < n_k; k += kUnpackStep) {
        if (k % kPairStep == 0) prefetcher.step();
        unpack_step(panel, k, units[p].w + k / 2);
      }
      if constexpr (kHasScales) store(units[p].d, load(reinterpret_cast<const float*>(panel)));
    }
    return units;
  }
  static const Unit* read(const uint8_t*, size_t, int, int64_t, Unit* units) { return units; }

  // acc: [kPanels], acc_stride apart, of [n][16].
  template <int n, class Prefetcher>
  static void tile(const Unit* units, int n_k, const RowTile<n>& rows, float* acc, int64_t acc_stride,
                   Prefetcher& prefetcher) {
    alignas(64) float sums[kPanels][n][16] = {};
    for (int k = 0; k < n_k; k += kPairStep) {
      prefetcher.step();
      F32 step[kPanels][n];
      multiply_step<n>(units, rows, k / 2, step);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 6
        for (int r = 0; r < n; ++r) {
          float* total = acc + p * acc_stride + 16 * r;
          float* part = kHasScales ? sums[p][r] : total;
          const F32 sum = add(load(part), step[p][r]);
          if (kHasScales && k + kPairStep == n_k) {
            store(total, fma(load(units[p].d), sum, load(total)));
          } else {
            store(part, sum);
          }
        }
      }
    }
  }

  // Both chains of kPairStep k, and their sum. word: of the first.
  template <int n>
  static CANDOR_INLINE void multiply_step(const Unit* units, const RowTile<n>& rows, int word, F32 (*step)[n]) {
    F32 even[kPanels][n];
    F32 odd[kPanels][n];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 6
      for (int r = 0; r < n; ++r) even[p][r] = odd[p][r] = splat(0.0f);
    }
    for (int end = word + kPairStep / 2; word < end; word += 2) {
      add_words<n>(units, rows, word, even);
      add_words<n>(units, rows, word + 1, odd);
    }
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 6
      for (int r = 0; r < n; ++r) step[p][r] = add(even[p][r], odd[p][r]);
    }
  }

  template <int n>
  static CANDOR_INLINE void add_words(const Unit* units, const RowTile<n>& rows, int word, F32 (*chains)[n]) {
    I32 w[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) w[p] = load_i(units[p].w[word]);
#pragma GCC unroll 6
    for (int r = 0; r < n; ++r) {
      const I32 x = splat_i(rows.words[r][word]);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) chains[p][r] = dot_pairs(chains[p][r], w[p], x);
    }
  }
};
