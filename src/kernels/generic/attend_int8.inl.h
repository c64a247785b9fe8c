// The matrix products of attention for pages of codes (KvFormat::kQ8, kQ4). Codes are multiplied as they are: queries,
// and what tokens weigh, become integers of 16 bits under a scale, and all sums are exact in 32 bits. So their order is
// free, and no page is made anew.

constexpr int32_t kBlockPairs = kKvScaleDims / 2;
constexpr int32_t kTilePairs = kKeyTile / 2;
constexpr int32_t kPagePairs = kPageTokens / 2;

struct WordScale {
  float scale;
  float inverse;
};

// largest_bits: of the magnitudes.
inline WordScale word_scale_of(int32_t largest_bits) {
  const float largest = std::bit_cast<float>(largest_bits);
  if (largest_bits >= 0x7f800000) return {std::bit_cast<float>(0x7fc00000), 0.0f};
  if (largest < 0x1p-100f) return {0.0f, 0.0f};
  return {largest / kMostWord, kMostWord / largest};
}

// n: 16 or 32 numbers; returns their scale.
inline float encode_words(const float* x, int32_t n, int32_t* words) {
  I32 largest = splat_i(0);
  for (int32_t i = 0; i < n; i += 16) largest = max_i(largest, and_i(f32_to_bits(load(x + i)), splat_i(0x7fffffff)));
  const WordScale of = word_scale_of(max_lanes(largest));
  for (int32_t i = 0; i < n; i += 16) {
    const I32 codes = of.inverse == 0.0f ? splat_i(0) : round_i(mul(load(x + i), splat(of.inverse)));
    store_i16(words + i / 2, codes);
  }
  return of.scale;
}

// Pairs of codes of 16 tokens (dims), of two dims (tokens) each: as a page has them, or as words.
struct BytePairs {
  const uint8_t* at;
  CANDOR_INLINE I32 pair(int32_t i) const { return widen_i8_pairs(at + 32 * i); }
};
struct WordPairs {
  const int32_t* at;
  CANDOR_INLINE I32 pair(int32_t i) const { return load_i(at + 16 * i); }
};
inline void widen_pairs(const uint8_t* codes, int32_t n, int32_t* words) {
  for (int32_t i = 0; i < n; ++i) store_i(words + 16 * i, widen_i8_pairs(codes + 32 * i));
}

// Of 16 tokens, and of 32 dims or the last 16.
struct ScoreBlock {
  int32_t n_pairs;
  F32 scales;             // of the tokens
  const int32_t* words;   // [query][kBlockPairs]
  const float* of_words;  // [query]: their scales
  float* scores;          // [query][kKeyTile]
  bool is_first;          // of a token's dims
};

template <int n, class Pairs>
CANDOR_NO_INLINE void score_codes(const Pairs& keys, const ScoreBlock& b, int32_t first) {
  I32 sums[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) sums[r] = splat_i(0);
  const int32_t* x = b.words + first * kBlockPairs;
#pragma GCC unroll 4
  for (int32_t i = 0; i < b.n_pairs; ++i) {
    const I32 k = keys.pair(i);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) sums[r] = dot2_scalar(sums[r], k, x + r * kBlockPairs + i);
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    float* at = b.scores + (first + r) * kKeyTile;
    const F32 scales = mul(b.scales, splat(b.of_words[first + r]));
    store(at, fma(to_f32(sums[r]), scales, b.is_first ? splat(0.0f) : load(at)));
  }
}

template <int n_tile, class Pairs>
inline void score_code_tiles(const Pairs& keys, const ScoreBlock& b, int32_t n, int32_t first = 0) {
  for (; first + n_tile <= n; first += n_tile) score_codes<n_tile>(keys, b, first);
  if constexpr (n_tile > 1) score_code_tiles<n_tile / 2>(keys, b, n, first);
}

// Codes of 16 dims of a tile's tokens, page after page.
struct BytePages {
  const uint8_t* const* at;
  int32_t offset;
  CANDOR_INLINE BytePairs page(int32_t i) const { return {at[i] + offset}; }
};
struct WordPages {
  const int32_t* at;
  CANDOR_INLINE WordPairs page(int32_t i) const { return {at + 16 * kPagePairs * i}; }
};

struct ValueSums {
  int32_t n_pages;
  const int32_t* words;  // [query][kTilePairs], from the first page on
  const float* factors;  // [query]
  float* o;              // [query][record]: 16 dims of each
  int32_t record;
};

template <int n, class Pages>
CANDOR_NO_INLINE void add_codes(const Pages& values, const ValueSums& v, int32_t first) {
  I32 sums[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) sums[r] = splat_i(0);
  const int32_t* x = v.words + first * kTilePairs;
  for (int32_t page = 0; page < v.n_pages; ++page, x += kPagePairs) {
    const auto pairs = values.page(page);
#pragma GCC unroll 4
    for (int32_t i = 0; i < kPagePairs; ++i) {
      const I32 w = pairs.pair(i);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) sums[r] = dot2_scalar(sums[r], w, x + r * kTilePairs + i);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) {
    float* o = v.o + (first + r) * v.record;
    store(o, fma(to_f32(sums[r]), splat(v.factors[first + r]), load(o)));
  }
}

template <int n_tile, class Pages>
inline void add_code_tiles(const Pages& values, const ValueSums& v, int32_t n, int32_t first = 0) {
  for (; first + n_tile <= n; first += n_tile) add_codes<n_tile>(values, v, first);
  if constexpr (n_tile > 1) add_code_tiles<n_tile / 2>(values, v, n, first);
}

// What the scales of a tile's tokens are to the largest of those that a row sees, times kMostWord; 0 of others.
struct TokenShares {
  float shares[kKeyTile];
  float largest;  // NaN where it is no number

  void set(const float* scales, const SeenTokens& seen) {
    I32 most = splat_i(0);
    for (int32_t t = 0; t < kKeyTile; t += 16) {
      const F32 scale = seen.keep(load(scales + t), t, 0.0f);
      most = max_i(most, and_i(f32_to_bits(scale), splat_i(0x7fffffff)));
      store(shares + t, scale);
    }
    const int32_t bits = max_lanes(most);
    largest = bits < 0x7f800000 ? std::bit_cast<float>(bits) : std::bit_cast<float>(0x7fc00000);
    const bool has_share = largest > 0.0f;
    const float inverse = has_share ? kMostWord / largest : 0.0f;
    for (int32_t t = 0; t < kKeyTile; t += 16) {
      store(shares + t, has_share ? mul(load(shares + t), splat(inverse)) : splat(0.0f));
    }
  }
};

// A query's probabilities in a tile over the largest of them, which is returned; all are 0 where that is next to
// nothing. What is no number is 0: its sum of probabilities says it.
inline float normalize_weights(float* p) {
  F32 most = splat(0.0f);
  for (int32_t t = 0; t < kKeyTile; t += 16) most = max(load(p + t), most);
  const float largest = max_tree(most);
  const bool is_none = largest < 0x1p-100f;
  const F32 inverse = splat(is_none ? 0.0f : 1.0f / largest);
  for (int32_t t = 0; t < kKeyTile; t += 16) store(p + t, max(mul(load(p + t), inverse), splat(0.0f)));
  return is_none ? 0.0f : largest;
}

inline void weigh_words(const float* p, const TokenShares& tokens, int32_t* words) {
  for (int32_t t = 0; t < kKeyTile; t += 16) {
    store_i16(words + t / 2, round_i(mul(load(p + t), load(tokens.shares + t))));
  }
}

// Of words, in outputs. -0 adds nothing to any number.
inline float word_factor(float largest_weight, float largest_scale) {
  const float factor = largest_weight * largest_scale * kWordUnit;
  return factor == 0.0f ? -0.0f : factor;
}

inline bool has_codes(const KvPages& pages) {
  return pages.format == KvFormat::kQ8 || pages.format == KvFormat::kQ4;
}

// Codes of half a K page (of a V page) from dim d on, which begins a block: of 16 dims and 16 (32) tokens, then of the
// next 16 dims. room: for those of kQ4.
constexpr int32_t kKeyGroupBytes = 16 * 16;
constexpr int32_t kValueGroupBytes = 16 * kPageTokens;
inline const uint8_t* codes_of(const AttendArgs& a, int32_t page, size_t offset) {
  return reinterpret_cast<const uint8_t*>(page_of(a.pages, page, offset)) + kv_codes_offset(a.head_dim);
}
inline const uint8_t* key_codes(const AttendArgs& a, int32_t page, int32_t half, int32_t d, uint8_t* room) {
  const int32_t dp = padded_dim(a.head_dim);
  const uint8_t* codes = codes_of(a, page, a.pages.k_offset);
  if (a.pages.format == KvFormat::kQ8) return codes + (half * dp + d) * 16;
  unpack_codes(codes + (half * kv_q4_dims(a.head_dim) + d) * 8, dp - d < 32 ? dp - d : 32, 16, room);
  return room;
}
inline const uint8_t* value_codes(const AttendArgs& a, int32_t page, int32_t d, uint8_t* room) {
  const int32_t dp = padded_dim(a.head_dim);
  const uint8_t* codes = codes_of(a, page, a.pages.v_offset);
  if (a.pages.format == KvFormat::kQ8) return codes + d * kPageTokens;
  unpack_codes(codes + d * kPageTokens / 2, dp - d < 32 ? dp - d : 32, kPageTokens, room);
  return room;
}
inline const uint8_t* scales_of(const AttendArgs& a, int32_t page, size_t offset, int32_t d) {
  return reinterpret_cast<const uint8_t*>(page_of(a.pages, page, offset)) + d / kKvScaleDims * kPageTokens * 2;
}

class CodeProducts {
 public:
  static constexpr bool kRoundsOperands = false;

  void load(const AttendScratch& s, int32_t dp, int32_t n) {
    for (int32_t d = 0; d < dp; d += kKvScaleDims) {
      const int32_t n_dims = dp - d < kKvScaleDims ? dp - d : kKvScaleDims;
      for (int32_t i = 0; i < n; ++i) {
        query_scales(s, d)[i] = encode_words(s.q + i * dp + d, n_dims, query_words(s, d) + i * kBlockPairs);
      }
    }
  }

  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    ahead_.begin(a, pages, n);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      for (int32_t half = 0; half < 2; ++half) {
        for (int32_t d = 0; d < dp; d += kKvScaleDims) {
          ahead_.steps(1);
          const F32 scales = load_f16(scales_of(a, page, a.pages.k_offset, d) + half * 32);
          const int32_t n_pairs = dp - d < kKvScaleDims ? (dp - d) / 2 : kBlockPairs;
          float* scores = s.scores + (page * kPageTokens + half * 16 - pages.t0);
          const ScoreBlock block = {n_pairs, scales, query_words(s, d), query_scales(s, d), scores, d == 0};
          score_half(key_codes(a, page, half, d, unpacked(s)), block, n, widened(s));
        }
      }
    }
  }

  void begin_weights(int32_t i, const SeenTokens& seen) {
    ahead_.steps(TileAhead::kStepsOfWeights);
    seen_[i] = {seen.begin > 0 ? seen.begin : 0, seen.end < kKeyTile ? seen.end : kKeyTile};
  }
  static float* place_of_weights(const AttendScratch& s, int32_t, int32_t i) { return s.scores + i * kKeyTile; }
  static void store_weights(F32 low, F32 high, float* place) {
    store(place, low);
    store(place + 16, high);
  }

  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t n_dims = padded_dim(a.value_dim());
    for (int32_t i = 0; i < n; ++i) largest_[i] = normalize_weights(s.scores + i * kKeyTile);
    for (int32_t d = 0; d < n_dims; d += kKvScaleDims) {
      weigh_block(a, pages, d, n, s);
      const uint8_t* codes[2 * kTilePages];
      const int32_t n_parts = read_block(a, pages, d, s, codes);
      const int32_t n_before = pages.begin * kPageTokens - pages.t0;
      for (int32_t group = 0; group < 2 && d + 16 * group < n_dims; ++group) {
        ahead_.steps(kTilePages);
        const ValueSums sums = {pages.end - pages.begin, token_words(s) + n_before / 2, factors_,
                                s.split + d + 16 * group, padded_dim(a.head_dim) + kRecordExtra};
        if (n_parts > sums.n_pages) {
          for (int32_t i = 0; i < n_parts; ++i) turn_key_codes(codes[i] + group * kKeyGroupBytes, widened(s) + i * 128);
          add_code_tiles<kCodeTile>(WordPages{widened(s)}, sums, n);
        } else {
          add_group(codes, group * kValueGroupBytes, sums, n, widened(s));
        }
      }
    }
  }

 private:
  static int32_t* query_words(const AttendScratch& s, int32_t d) {
    return reinterpret_cast<int32_t*>(s.q_tiles) + d / kKvScaleDims * kQueryChunk * kBlockPairs;
  }
  static int32_t* token_words(const AttendScratch& s) { return reinterpret_cast<int32_t*>(s.halves); }
  static float* query_scales(const AttendScratch& s, int32_t d) {
    return reinterpret_cast<float*>(s.halves) + kQueryChunk * kTilePairs + d / kKvScaleDims * kQueryChunk;
  }
  // Of a block: its int8 codes, and words of 16 dims.
  static uint8_t* unpacked(const AttendScratch& s) { return reinterpret_cast<uint8_t*>(s.expanded); }
  static int32_t* widened(const AttendScratch& s) {
    return reinterpret_cast<int32_t*>(s.expanded + 2 * kTilePages * kValueGroupBytes);
  }

  static void score_half(const uint8_t* codes, const ScoreBlock& block, int32_t n, int32_t* words) {
    if (n <= kCodeTile) return score_code_tiles<kCodeTile>(BytePairs{codes}, block, n);
    widen_pairs(codes, block.n_pairs, words);
    score_code_tiles<kCodeTile>(WordPairs{words}, block, n);
  }

  // Words and factors of the tile's tokens in the 32 dims from d on.
  void weigh_block(const AttendArgs& a, const TilePages& pages, int32_t d, int32_t n, const AttendScratch& s) {
    float scales[kKeyTile] = {};
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const uint8_t* halves = scales_of(a, page, a.pages.v_offset, d);
      float* to = scales + (page * kPageTokens - pages.t0);
      store(to, load_f16(halves));
      store(to + 16, load_f16(halves + 32));
    }
    TokenShares tokens;
    for (int32_t i = 0; i < n; ++i) {
      if (i == 0 || !seen_[i].is_equal(seen_[i - 1])) tokens.set(scales, seen_[i]);
      weigh_words(s.scores + i * kKeyTile, tokens, token_words(s) + i * kTilePairs);
      factors_[i] = word_factor(largest_[i], tokens.largest);
    }
  }

  // codes: of each page; where values are the beginnings of keys, of its halves. Returns how many.
  static int32_t read_block(const AttendArgs& a, const TilePages& pages, int32_t d, const AttendScratch& s,
                            const uint8_t** codes) {
    uint8_t* room = unpacked(s);
    int32_t n = 0;
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      if (a.latent_dim == 0) {
        codes[n++] = value_codes(a, page, d, room);
        room += 2 * kValueGroupBytes;
        continue;
      }
      for (int32_t half = 0; half < 2; ++half) {
        codes[n++] = key_codes(a, page, half, d, room);
        room += 2 * kKeyGroupBytes;
      }
    }
    return n;
  }

  static void add_group(const uint8_t* const* codes, int32_t offset, const ValueSums& sums, int32_t n, int32_t* words) {
    if (n <= kCodeTile) return add_code_tiles<kCodeTile>(BytePages{codes, offset}, sums, n);
    for (int32_t i = 0; i < sums.n_pages; ++i) {
      widen_pairs(codes[i] + offset, kPagePairs, words + i * kPagePairs * 16);
    }
    add_code_tiles<kCodeTile>(WordPages{words}, sums, n);
  }

  TileAhead ahead_;
  SeenTokens seen_[kQueryChunk] = {};
  float largest_[kQueryChunk];
  float factors_[kQueryChunk];
};
