// Attention's two matrix products by VDPBF16PS (generic/attend.inl.h does the rest). A page's pairs, dims (tokens) 0
// and 1, then 2 and 3, become words of 0 and 2, and of 1 and 3: the two chains, as in products.inl.h.

// What a page holds from one group on: of K 32 dims of 16 tokens, of V all tokens of 16 dims.
struct PairGroup {
  const int32_t* at;
  CANDOR_INLINE FourWords four(int32_t i) const { return words_of_pairs(at + 8 * i); }
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
template <int n>
inline void score_words(const int32_t* keys, const int32_t* q, int32_t dp, float* scores) {
  F32 total[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) total[r] = splat(0.0f);
  for (int32_t d0 = 0; d0 < dp; d0 += 32) {
    F32 even[n];
    F32 odd[n];
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
    const int32_t end = dp - d0 < 32 ? dp : d0 + 32;
    const PairGroup dims = {keys + 8 * d0};
    for (int32_t d = d0; d < end; d += 4) add_four<n>(dims.four(d - d0), q + d / 2 * n, 1, n, even, odd);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) total[r] = add(total[r], add(even[r], odd[r]));
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(scores + r * kKeyTile, total[r]);
}

template <int n_tile>
inline void score_tiles(const int32_t* keys, const int32_t* q, int32_t dp, int32_t n, float* scores) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) score_words<n_tile>(keys, q + i * dp / 2, dp, scores + i * kKeyTile);
  if constexpr (n_tile > 1) score_tiles<n_tile / 2>(keys, q + i * dp / 2, dp, n - i, scores + i * kKeyTile);
}

// o[16 dims] += the page's tokens, for n queries. p: the page's probabilities.
template <int n>
inline void add_words(const PairGroup& values, const int32_t* p, int32_t record, float* o) {
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

template <int n_tile>
inline void add_tiles(const PairGroup& values, const int32_t* p, int32_t record, int32_t n, float* o) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) add_words<n_tile>(values, p + i * kWeightWords, record, o + i * record);
  if constexpr (n_tile > 1) add_tiles<n_tile / 2>(values, p + i * kWeightWords, record, n - i, o + i * record);
}

class PairProducts {
 public:
  static constexpr bool kRoundsOperands = true;

  // Queries as words, tiles as the scores take them: of every tile [dp / 2][queries].
  void load(const AttendScratch& s, int32_t dp, int32_t n) { tile_words<kQueryTile>(s.q, dp, n, words_of(s)); }

  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    ahead_.begin(a, pages, n);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* k = page_of(a.pages, page, a.pages.k_offset);
      float* scores = s.scores + (page * kPageTokens - pages.t0);
      for (int32_t half = 0; half < 2; ++half) {
        ahead_.steps(dp / 32);
        score_tiles<kQueryTile>(k + 8 * dp * half, words_of(s), dp, n, scores + 16 * half);
      }
    }
  }

  void begin_weights(int32_t, const SeenTokens&) { ahead_.steps(TileAhead::kStepsOfWeights); }

  // Probabilities as words, after the queries.
  static uint16_t* place_of_weights(const AttendScratch& s, int32_t dp, int32_t i) {
    return s.halves + kQueryChunk * dp + i * kKeyTile;
  }
  static void store_weights(F32 low, F32 high, uint16_t* place) {
    store_i(reinterpret_cast<int32_t*>(place), words_of_row(low, high));
  }

  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* v = page_of(a.pages, page, a.pages.v_offset);
      const auto* p = reinterpret_cast<const int32_t*>(place_of_weights(s, dp, 0) + page * kPageTokens - pages.t0);
      for (int32_t d = 0; d < dp; d += 16) {
        ahead_.steps(1);
        add_tiles<kQueryTile>({v + kPageTokens / 2 * d}, p, dp + kRecordExtra, n, s.split + d);
      }
    }
  }

 private:
  static int32_t* words_of(const AttendScratch& s) { return reinterpret_cast<int32_t*>(s.halves); }

  TileAhead ahead_;
};
