// Attention's two matrix products (q k^T and p v) on tile registers, for up to 32 queries at once (generic/attend.inl.h
// does the rest). A page (32 tokens of K, or of V, of one head: that head's part of a K/V block) is a right operand
// as it lies; queries and probabilities are rewritten as bf16 pairs.

constexpr int32_t kTileMinQueries = 9;  // fewer are left to vector instructions

// [n] values that are bf16, kept as f32; n is a multiple of 16.
inline void store_row_halves(const float* src, int32_t n, uint16_t* dst) {
  for (int32_t i = 0; i < n; i += 16) store_halves(dst + i, load(src + i));
}

alignas(64) constexpr uint16_t kEvenBeforeOdd[32] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                     1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};

template <class Tiles>
class TileProducts {
 public:
  static constexpr bool kRoundsOperands = true;

  TileProducts() : tiles_(kMixedTiles) {}

  void load(const AttendScratch& s, int32_t dp, int32_t n) {
    store_row_halves(s.q, n * dp, s.halves);
    const auto n_idle = static_cast<size_t>((kTileRows16 - n % kTileRows16) % kTileRows16);  // rows of the last tile
    std::memset(s.halves + n * dp, 0, n_idle * static_cast<size_t>(dp) * sizeof(uint16_t));
    std::memset(place_of_weights(s, dp, n), 0, n_idle * kKeyTile * sizeof(uint16_t));
  }

  void begin_weights(int32_t, const SeenTokens&) {}

  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* k = keys_of(a, page);
      prefetch_range(page + 1 < pages.end ? keys_of(a, page + 1) : values_of(a, pages.begin), dp * 16);
      float* scores = s.scores + (page * kPageTokens - pages.t0);
      if (n > kTileRows16) {
        score_page<2>(k, s.halves, dp, scores);
      } else {
        score_page<1>(k, s.halves, dp, scores);
      }
    }
  }

  // Probabilities as bf16, after the queries.
  static uint16_t* place_of_weights(const AttendScratch& s, int32_t dp, int32_t i) {
    return s.halves + kQueryChunk * dp + i * kKeyTile;
  }
  static void store_weights(F32 low, F32 high, uint16_t* place) {
    const __m512i both = _mm512_or_si512(_mm512_srli_epi32(_mm512_castps_si512(low), 16), _mm512_castps_si512(high));
    _mm512_storeu_si512(place, _mm512_permutexvar_epi16(_mm512_load_si512(kEvenBeforeOdd), both));
  }

  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t i = 0; i < n; i += kTileRows16) {
      add_dims<4>(a, pages, place_of_weights(s, dp, i), 0, s.split + i * (dp + kRecordExtra));
    }
  }

 private:
  static const int32_t* keys_of(const AttendArgs& a, int32_t page) { return page_of(a.pages, page, a.pages.k_offset); }
  static const int32_t* values_of(const AttendArgs& a, int32_t page) {
    return page_of(a.pages, page, a.pages.v_offset);
  }
  // Sums (row tile r, half h of the page) stand in 2 r + h; a and b of this depth in kA and kB.
  template <int r, int kA, int kB>
  void score_rows(const int32_t* k, const uint16_t* q, int32_t dp) {
    tiles_.template load<kA>(q + r * kTileRows16 * dp, static_cast<size_t>(dp) * 2);
    tiles_.template load<kB>(k, 64);
    tiles_.template dot_bf16<2 * r, kA, kB>();
    tiles_.template load<kB>(k + dp * 8, 64);
    tiles_.template dot_bf16<2 * r + 1, kA, kB>();
  }
  template <int n, int kA, int kB>
  void score_dims(const int32_t* k, const uint16_t* q, int32_t dp) {
    score_rows<0, kA, kB>(k, q, dp);
    if constexpr (n > 1) score_rows<1, kA, kB>(k, q, dp);
  }

  template <int n>
  void score_page(const int32_t* k, const uint16_t* q, int32_t dp, float* scores) {
    zero_sums<Tiles, 2 * n>(tiles_);
    int32_t d = 0;
    for (; d + 32 <= dp; d += 32) score_dims<n, 4, 5>(k + d * 8, q + d, dp);
    if (d < dp) score_dims<n, 6, 7>(k + d * 8, q + d, dp);
    constexpr size_t kStride = kKeyTile * sizeof(float);
    tiles_.template store<0>(scores, kStride);
    tiles_.template store<1>(scores + 16, kStride);
    if constexpr (n == 2) {
      tiles_.template store<2>(scores + kTileRows16 * kKeyTile, kStride);
      tiles_.template store<3>(scores + kTileRows16 * kKeyTile + 16, kStride);
    }
  }

  // v: [16 tokens][16] pairs of dims group i, the groups one after another.
  template <int i>
  void add_group(const int32_t* v) {
    tiles_.template load<5>(v + 256 * i, 64);
    tiles_.template dot_bf16<i, 4, 5>();
  }
  template <int n>
  void add_page(const int32_t* v) {
    add_group<0>(v);
    if constexpr (n > 1) add_group<1>(v);
    if constexpr (n > 2) {
      add_group<2>(v);
      add_group<3>(v);
    }
  }

  // Dims [first, dp) of 16 queries, n groups of 16 at once. o: the first query's record.
  template <int n>
  void add_dims(const AttendArgs& a, TilePages pages, const uint16_t* p, int32_t first, float* o) {
    const int32_t dp = padded_dim(a.head_dim);
    const size_t stride = static_cast<size_t>(dp + kRecordExtra) * sizeof(float);
    int32_t d = first;
    for (; d + 16 * n <= dp; d += 16 * n) {
      load_tiles<Tiles, n>(tiles_, o + d, 16, stride);
      for (int32_t page = pages.begin; page < pages.end; ++page) {
        tiles_.template load<4>(p + (page * kPageTokens - pages.t0), kKeyTile * sizeof(uint16_t));
        prefetch_range((page + 1 < pages.end ? values_of(a, page + 1) : keys_of(a, pages.next)) + d * 16, 256 * n);
        add_page<n>(values_of(a, page) + d * 16);
      }
      store_tiles<Tiles, n>(tiles_, o + d, 16, stride);
    }
    if constexpr (n > 1) add_dims<n / 2>(a, pages, p, d, o);
  }

  Tiles tiles_;
};
