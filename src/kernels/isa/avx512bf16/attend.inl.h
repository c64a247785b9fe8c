// Attention's two matrix products by VDPBF16PS (generic/attend.inl.h does the rest). A page's pairs, dims (tokens) 0
// and 1, then 2 and 3, become words of 0 and 2, and of 1 and 3: the two chains, as in products.inl.h. Codes of int8
// pages become the same words where few queries need them.

alignas(64) constexpr uint16_t kInterleaved[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                   8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

// Rounded to bf16: `high` in the upper half of each lane, `low` in the lower.
CANDOR_INLINE I32 round_to_words(F32 high, F32 low) {
  I32 halves;  // first all of low
  __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(halves) : "v"(high), "v"(low));
  return _mm512_permutexvar_epi16(_mm512_load_si512(kInterleaved), halves);
}

// What a page holds from one group on: of K 32 dims of 16 tokens, of V all tokens of 16 dims.
struct PairGroup {
  const int32_t* at;
  CANDOR_INLINE FourWords four(int32_t i) const { return words_of_pairs(at + 8 * i); }
};
struct KeyCodes {
  const uint8_t* at;
  F32 scale;  // of the tokens
  CANDOR_INLINE F32 dim(int32_t i) const { return mul(to_f32(widen_i8(at + 16 * i)), scale); }
  CANDOR_INLINE FourWords four(int32_t i) const {
    return {round_to_words(dim(i), dim(i + 2)), round_to_words(dim(i + 1), dim(i + 3))};
  }
};
struct ValueCodes {
  const uint8_t* at;
  const float* scales;  // of the tokens
  CANDOR_INLINE F32 token(int32_t i) const { return mul(to_f32(widen_i8(at + 16 * i)), splat(scales[i])); }
  CANDOR_INLINE FourWords four(int32_t i) const {
    return {round_to_words(token(i), token(i + 2)), round_to_words(token(i + 1), token(i + 3))};
  }
};

// How pages are read.
struct PairPages {
  struct Keys {  // of half a page
    const int32_t* at;
    CANDOR_INLINE PairGroup dims(int32_t d) const { return {at + 8 * d}; }
  };
  static Keys keys(const int32_t* page, int32_t dp, int32_t half) { return {page + 8 * dp * half}; }
  static PairGroup values(const int32_t* page, int32_t, int32_t d, float*) { return {page + kPageTokens / 2 * d}; }
};
struct CodePages {
  struct Keys {
    const uint8_t* at;
    const uint8_t* scales;
    CANDOR_INLINE KeyCodes dims(int32_t d) const {
      return {at + 16 * d, load_f16(scales + d / kKvScaleDims * kPageTokens * 2)};
    }
  };
  static Keys keys(const int32_t* page, int32_t dp, int32_t half) {
    const auto* scales = reinterpret_cast<const uint8_t*>(page);
    return {scales + kv_codes_offset(dp) + 16 * dp * half, scales + 32 * half};
  }
  // scales: room for those of the tokens.
  static ValueCodes values(const int32_t* page, int32_t dp, int32_t d, float* scales) {
    const auto* halves = reinterpret_cast<const uint8_t*>(page);
    const uint8_t* group = halves + d / kKvScaleDims * kPageTokens * 2;
    store(scales, load_f16(group));
    store(scales + 16, load_f16(group + 32));
    return {halves + kv_codes_offset(dp) + kPageTokens * d, scales};
  }
};

// acc + the products of w with *x in every lane.
CANDOR_INLINE F32 dot_pairs_scalar(F32 acc, I32 w, const int32_t* x) {
  __asm__("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*x));
  return acc;
}

constexpr int32_t kWeightWords = kKeyTile / 2;  // of a query

template <int n_tile>
inline void tile_row(const float* q, int32_t dp, int32_t* tile) {
  for (int32_t d = 0; d < dp; d += 16) {
    alignas(64) int32_t words[16];
    store_i(words, words_of_row(load(q + d), splat(0.0f)));
    for (int32_t i = 0; i < 8; ++i) tile[(d / 2 + i) * n_tile] = words[i];
  }
}
template <int n_tile>
inline void tile_words(const float* q, int32_t dp, int32_t n, int32_t* tiles) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) {
    for (int r = 0; r < n_tile; ++r) tile_row<n_tile>(q + (i + r) * dp, dp, tiles + i * dp / 2 + r);
  }
  if constexpr (n_tile > 1) tile_words<n_tile / 2>(q + i * dp, dp, n - i, tiles + i * dp / 2);
}

// x: of the even chain of the first row; from row to row, and to the odd chain.
template <int n>
CANDOR_INLINE void add_four(const FourWords& w, const int32_t* x, int32_t row, int32_t odd_word, F32* even, F32* odd) {
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    even[r] = dot_pairs_scalar(even[r], w.even, x + r * row);
    odd[r] = dot_pairs_scalar(odd[r], w.odd, x + r * row + odd_word);
  }
}

// Scores of 16 tokens for n queries. keys: of the page's half.
template <int n, class Keys>
inline void score_words(const Keys& keys, const int32_t* q, int32_t dp, float* scores) {
  F32 total[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) total[r] = splat(0.0f);
  for (int32_t d0 = 0; d0 < dp; d0 += 32) {
    F32 even[n];
    F32 odd[n];
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
    const int32_t end = dp - d0 < 32 ? dp : d0 + 32;
    const auto dims = keys.dims(d0);
    for (int32_t d = d0; d < end; d += 4) add_four<n>(dims.four(d - d0), q + d / 2 * n, 1, n, even, odd);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) total[r] = add(total[r], add(even[r], odd[r]));
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(scores + r * kKeyTile, total[r]);
}

template <int n_tile, class Keys>
inline void score_tiles(const Keys& keys, const int32_t* q, int32_t dp, int32_t n, float* scores) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) score_words<n_tile>(keys, q + i * dp / 2, dp, scores + i * kKeyTile);
  if constexpr (n_tile > 1) score_tiles<n_tile / 2>(keys, q + i * dp / 2, dp, n - i, scores + i * kKeyTile);
}

// o[16 dims] += the page's tokens, for n queries. p: the page's probabilities.
template <int n, class Values>
inline void add_words(const Values& values, const int32_t* p, int32_t record, float* o) {
  F32 even[n];
  F32 odd[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
#pragma GCC unroll 8
  for (int t = 0; t < kPageTokens; t += 4) {
    add_four<n>(values.four(t), p + t / 2, kWeightWords, 1, even, odd);
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(o + r * record, add(load(o + r * record), add(even[r], odd[r])));
}

template <int n_tile, class Values>
inline void add_tiles(const Values& values, const int32_t* p, int32_t record, int32_t n, float* o) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) add_words<n_tile>(values, p + i * kWeightWords, record, o + i * record);
  if constexpr (n_tile > 1) add_tiles<n_tile / 2>(values, p + i * kWeightWords, record, n - i, o + i * record);
}

class PairProducts {
 public:
  static constexpr bool kRoundsOperands = true;

  // Queries as words, tiles as the scores take them: of every tile [dp / 2][queries].
  void load(const AttendScratch& s, int32_t dp, int32_t n) { tile_words<kQueryTile>(s.q, dp, n, words_of(s)); }

  // int8 pages are read as they are by few queries.
  static bool expands(const AttendArgs& a, int32_t n) {
    if (a.pages.format == KvFormat::kQ4) return true;
    return a.pages.format == KvFormat::kQ8 && (n > kQueryTile || a.latent_dim > 0);
  }

  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    if (a.pages.format == KvFormat::kQ8) return scores_of<CodePages>(a, pages, n, s);
    scores_of<PairPages>(a, pages, n, s);
  }

  void begin_weights() { ahead_.steps(TileAhead::kStepsOfWeights); }

  // Probabilities as words, after the queries.
  static uint16_t* place_of_weights(const AttendScratch& s, int32_t dp, int32_t i) {
    return s.halves + kQueryChunk * dp + i * kKeyTile;
  }
  static void store_weights(F32 low, F32 high, uint16_t* place) {
    store_i(reinterpret_cast<int32_t*>(place), words_of_row(low, high));
  }

  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    if (a.pages.format == KvFormat::kQ8) return values_of<CodePages>(a, pages, n, s);
    values_of<PairPages>(a, pages, n, s);
  }

 private:
  static int32_t* words_of(const AttendScratch& s) { return reinterpret_cast<int32_t*>(s.halves); }

  template <class Pages>
  void scores_of(const AttendArgs& a, const TilePages& pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    ahead_.begin(a, pages, n);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* k = page_of(a.pages, page, a.pages.k_offset);
      float* scores = s.scores + (page * kPageTokens - pages.t0);
      for (int32_t half = 0; half < 2; ++half) {
        ahead_.steps(dp / 32);
        score_tiles<kQueryTile>(Pages::keys(k, dp, half), words_of(s), dp, n, scores + 16 * half);
      }
    }
  }

  template <class Pages>
  void values_of(const AttendArgs& a, const TilePages& pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* v = page_of(a.pages, page, a.pages.v_offset);
      const auto* p = reinterpret_cast<const int32_t*>(place_of_weights(s, dp, 0) + page * kPageTokens - pages.t0);
      for (int32_t d = 0; d < dp; d += 16) {
        ahead_.steps(1);
        alignas(64) float scales[kPageTokens];
        add_tiles<kQueryTile>(Pages::values(v, dp, d, scales), p, dp + kRecordExtra, n, s.split + d);
      }
    }
  }

  TileAhead ahead_;
};
