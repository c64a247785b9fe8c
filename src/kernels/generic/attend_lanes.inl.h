// The matrix products of attention (attend.inl.h) on lanes, for pages of bf16 and of f32.

// How a lane's two neighbours (dims 2i and 2i + 1 of a K page, tokens of a V page) are read; i even.
struct PairPage {
  using Element = int32_t;
  static constexpr bool kRoundsOperands = true;  // queries and probabilities, to bf16
  static constexpr int32_t kStep = 8;            // elements from one dim (token) to the next
  static F32 even(const Element* p, int32_t i) { return even_bf16(load_i(p + i * kStep)); }
  static F32 odd(const Element* p, int32_t i) { return odd_bf16(load_i(p + i * kStep)); }
};
struct WidePage {
  using Element = float;
  static constexpr bool kRoundsOperands = false;
  static constexpr int32_t kStep = 16;
  static F32 even(const Element* p, int32_t i) { return load(p + i * kStep); }
  static F32 odd(const Element* p, int32_t i) { return load(p + (i + 1) * kStep); }
};

// Queries are taken in tiles of the largest size as long as there are enough, then of the next one. Four are two tiles
// of two, where the largest one has three: one query alone is half as quick.
constexpr int smaller_query_tile(int n_tile) {
  return (n_tile + 1) / 2;
}
template <int n_tile>
constexpr bool has_query_tile(int32_t n_left) {
  return n_left >= n_tile && !(n_tile == 3 && n_left == 4);
}

// q_tiles: of every tile [dp][queries], so that one pointer serves all of them.
template <int n_tile>
inline void tile_queries(const float* q, int32_t dp, int32_t n, float* tiles) {
  int32_t i = 0;
  for (; has_query_tile<n_tile>(n - i); i += n_tile) {
    for (int32_t d = 0; d < dp; ++d) {
      for (int r = 0; r < n_tile; ++r) tiles[i * dp + d * n_tile + r] = q[(i + r) * dp + d];
    }
  }
  if constexpr (n_tile > 1) tile_queries<smaller_query_tile(n_tile)>(q + i * dp, dp, n - i, tiles + i * dp);
}

// scores of 16 tokens for n queries. k: [dp] of the page's half; q: a tile. A dim's keys, then the next one's: two
// registers less than both at once.
template <class Page, int n>
inline void score_tokens(const typename Page::Element* k, const float* q, int32_t dp, float* scores) {
  for (int32_t d0 = 0; d0 < dp; d0 += 32) {
    F32 even[n];
    F32 odd[n];
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
    const int32_t end = dp - d0 < 32 ? dp : d0 + 32;
    for (int32_t d = d0; d < end; d += 2) {
      const F32 k0 = Page::even(k, d);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) even[r] = fma_scalar(k0, q + d * n + r, even[r]);
      const F32 k1 = Page::odd(k, d);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) odd[r] = fma_scalar(k1, q + (d + 1) * n + r, odd[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      float* at = scores + r * kKeyTile;
      store(at, add(d0 == 0 ? splat(0.0f) : load(at), add(even[r], odd[r])));
    }
  }
}

template <class Page, int n_tile>
inline void score_queries(const typename Page::Element* k, const float* q, int32_t dp, int32_t n, float* scores) {
  int32_t i = 0;
  for (; has_query_tile<n_tile>(n - i); i += n_tile) {
    score_tokens<Page, n_tile>(k, q + i * dp, dp, scores + i * kKeyTile);
  }
  if constexpr (n_tile > 1) {
    score_queries<Page, smaller_query_tile(n_tile)>(k, q + i * dp, dp, n - i, scores + i * kKeyTile);
  }
}

// o[16 dims] += the page's tokens, for n queries. v: [32] of a group of dims; p: the page's probabilities.
template <class Page, int n>
inline void add_values(const typename Page::Element* v, const float* p, int32_t record, float* o) {
  F32 even[n];
  F32 odd[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
#pragma GCC unroll 1
  for (int t = 0; t < kPageTokens; t += 2) {
    const F32 v0 = Page::even(v, t);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) even[r] = fma_scalar(v0, p + r * kKeyTile + t, even[r]);
    const F32 v1 = Page::odd(v, t);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) odd[r] = fma_scalar(v1, p + r * kKeyTile + t + 1, odd[r]);
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(o + r * record, add(load(o + r * record), add(even[r], odd[r])));
}

template <class Page, int n_tile>
inline void add_values_of(const typename Page::Element* v, const float* p, int32_t record, int32_t n, float* o) {
  int32_t i = 0;
  for (; has_query_tile<n_tile>(n - i); i += n_tile) {
    add_values<Page, n_tile>(v, p + i * kKeyTile, record, o + i * record);
  }
  if constexpr (n_tile > 1) {
    add_values_of<Page, smaller_query_tile(n_tile)>(v, p + i * kKeyTile, record, n - i, o + i * record);
  }
}

// The matrix products of attention on lanes. An instruction set with tile registers brings its own.
template <class Page>
struct LaneProductsOf {
  using Element = typename Page::Element;
  static constexpr bool kRoundsOperands = Page::kRoundsOperands;

  // Called when s.q holds the n queries of a chunk.
  void load(const AttendScratch& s, int32_t dp, int32_t n) { tile_queries<kQueryTile>(s.q, dp, n, s.q_tiles); }

  // s.scores: of the tile's tokens, for n queries.
  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    const int32_t n_half = dp * Page::kStep;
    ahead_.begin(a, pages, n);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const Element* k = keys_of(a, page);
      float* scores = s.scores + (page * kPageTokens - pages.t0);
      ahead_.steps(dp / 32);
      score_queries<Page, kQueryTile>(k, s.q_tiles, dp, n, scores);
      ahead_.steps(dp / 32);
      score_queries<Page, kQueryTile>(k + n_half, s.q_tiles, dp, n, scores + 16);
    }
  }

  void begin_weights(int32_t, const SeenTokens&) { ahead_.steps(TileAhead::kStepsOfWeights); }

  // Probabilities take the scores' places.
  static float* place_of_weights(const AttendScratch& s, int32_t, int32_t i) { return s.scores + i * kKeyTile; }
  static void store_weights(F32 low, F32 high, float* place) {
    store(place, low);
    store(place + 16, high);
  }

  // The outputs of s.split += the probabilities times the values of the tile's tokens.
  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    const int32_t n_group = kPageTokens * Page::kStep;  // elements of 16 dims
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const Element* v = values_of(a, page);
      const float* p = s.scores + (page * kPageTokens - pages.t0);
      for (int32_t d = 0; d < dp; d += 16, v += n_group) {
        ahead_.steps(1);
        add_values_of<Page, kQueryTile>(v, p, dp + kRecordExtra, n, s.split + d);
      }
    }
  }

 private:
  static const Element* keys_of(const AttendArgs& a, int32_t page) {
    return reinterpret_cast<const Element*>(page_of(a.pages, page, a.pages.k_offset));
  }
  static const Element* values_of(const AttendArgs& a, int32_t page) {
    return reinterpret_cast<const Element*>(page_of(a.pages, page, a.pages.v_offset));
  }

  TileAhead ahead_;
};

using LaneProducts = LaneProductsOf<PairPage>;
