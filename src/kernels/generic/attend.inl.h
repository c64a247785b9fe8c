// Attention over pages (kernels/attend.h): key tiles in order, a running maximum and sum, splits at fixed positions.
// Queries are pairs (row, head of the group), numbered row * n_group_heads + head; a chunk of them walks the keys
// together, each in its own order of operations.

constexpr int32_t kQueryChunk = 32;
constexpr float kLowestScore = -1e30f;  // where the running maximum starts; exp(kLowestScore - x) is 0

// A query's state: o[Dp], l[16], then the running maximum and the sum of l.
struct QueryRecord {
  float* o;
  float* lanes;
  float* max;
  float* sum;
};

inline int32_t padded_dim(int32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}

inline QueryRecord record_of(float* records, int32_t dp, int32_t i) {
  float* o = records + static_cast<int64_t>(i) * (dp + kRecordExtra);
  return {o, o + dp, o + dp + 16, o + dp + 17};
}

inline void reset_records(float* records, int32_t dp, int32_t n) {
  std::memset(records, 0, static_cast<size_t>(n) * static_cast<size_t>(dp + kRecordExtra) * sizeof(float));
  for (int32_t i = 0; i < n; ++i) *record_of(records, dp, i).max = kLowestScore;
}

struct AttendScratch {
  float* q;          // [kQueryChunk][Dp], rounded to bf16
  float* scores;     // [kQueryChunk][kKeyTile], then probabilities
  float* split;      // [kQueryChunk] records
  float* total;      // [kQueryChunk] records
  uint16_t* halves;  // [kQueryChunk][Dp + kKeyTile]: room for q and probabilities as bf16
  AttendScratch(std::byte* base, int32_t dp)
      : q(reinterpret_cast<float*>(base)),
        scores(q + kQueryChunk * dp),
        split(scores + kQueryChunk * kKeyTile),
        total(split + kQueryChunk * (dp + kRecordExtra)),
        halves(reinterpret_cast<uint16_t*>(total + kQueryChunk * (dp + kRecordExtra))) {
    static_assert(kQueryChunk == kAttendQueries);
  }
};

// Queries [first, first + n) of the call.
struct QueryChunk {
  int32_t first;
  int32_t n;
};

inline int32_t position_of(const AttendArgs& a, int32_t query) {
  return a.first_position + query / a.n_group_heads;
}
inline int32_t window_begin(const AttendArgs& a, int32_t position) {
  const int32_t oldest = a.window_tokens == 0 ? 0 : position - a.window_tokens + 1;
  return oldest < 0 ? 0 : oldest;
}
inline const float* query_row(const AttendArgs& a, int32_t query) {
  return a.q + query / a.n_group_heads * a.q_stride + static_cast<int64_t>(query % a.n_group_heads) * a.head_dim;
}

inline void load_queries(const AttendArgs& a, QueryChunk chunk, int32_t dp, float* q) {
  for (int32_t i = 0; i < chunk.n; ++i) {
    const float* src = query_row(a, chunk.first + i);
    for (int32_t d = 0; d < dp; d += 16) {
      store(q + i * dp + d, round_bf16(mul(load_part(src + d, a.head_dim - d, 0.0f), splat(a.scale))));
    }
  }
}

// scores of 16 tokens for n queries. k: [dp / 2][16] pairs.
template <int n>
inline void score_tokens(const int32_t* k, const float* q, int32_t dp, float* scores) {
  F32 total[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) total[r] = splat(0.0f);
  for (int32_t d0 = 0; d0 < dp; d0 += 32) {
    F32 even[n];
    F32 odd[n];
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
    const int32_t end = dp - d0 < 32 ? dp : d0 + 32;
    for (int32_t d = d0; d < end; d += 2) {
      const I32 pairs = load_i(k + d * 8);
      const F32 k0 = even_bf16(pairs);
      const F32 k1 = odd_bf16(pairs);
#pragma GCC unroll 8
      for (int r = 0; r < n; ++r) {
        even[r] = fma_scalar(k0, q + r * dp + d, even[r]);
        odd[r] = fma_scalar(k1, q + r * dp + d + 1, odd[r]);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) total[r] = add(total[r], add(even[r], odd[r]));
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(scores + r * kKeyTile, total[r]);
}

template <int n_tile>
inline void score_queries(const int32_t* k, const float* q, int32_t dp, int32_t n, float* scores) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) score_tokens<n_tile>(k, q + i * dp, dp, scores + i * kKeyTile);
  if constexpr (n_tile > 1) score_queries<n_tile / 2>(k, q + i * dp, dp, n - i, scores + i * kKeyTile);
}

// o[16 dims] += the page's tokens, for n queries. v: [16][16] pairs; p: the page's probabilities.
template <int n>
inline void add_values(const int32_t* v, const float* p, int32_t record, float* o) {
  F32 even[n];
  F32 odd[n];
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) even[r] = odd[r] = splat(0.0f);
#pragma GCC unroll 4
  for (int t = 0; t < kPageTokens; t += 2) {
    const I32 pairs = load_i(v + t * 8);
    const F32 v0 = even_bf16(pairs);
    const F32 v1 = odd_bf16(pairs);
#pragma GCC unroll 8
    for (int r = 0; r < n; ++r) {
      even[r] = fma_scalar(v0, p + r * kKeyTile + t, even[r]);
      odd[r] = fma_scalar(v1, p + r * kKeyTile + t + 1, odd[r]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < n; ++r) store(o + r * record, add(load(o + r * record), add(even[r], odd[r])));
}

template <int n_tile>
inline void add_values_of(const int32_t* v, const float* p, int32_t record, int32_t n, float* o) {
  int32_t i = 0;
  for (; i + n_tile <= n; i += n_tile) add_values<n_tile>(v, p + i * kKeyTile, record, o + i * record);
  if constexpr (n_tile > 1) add_values_of<n_tile / 2>(v, p + i * kKeyTile, record, n - i, o + i * record);
}

// The cap, then the distance to the query at `position`; token t0 + i stands at scores + i.
inline void adjust_scores(const AttendArgs& a, int32_t query, int32_t t0, float* scores) {
  const float slope = a.slopes == nullptr ? 0.0f : a.slopes[query % a.n_group_heads];
  const int32_t position = position_of(a, query);
  for (int32_t t = 0; t < kKeyTile; t += 16) {
    F32 score = load(scores + t);
    if (a.softcap != 0.0f) score = soft_cap16(score, a.softcap);
    if (a.slopes != nullptr) {
      float distance[16];
      for (int i = 0; i < 16; ++i) distance[i] = static_cast<float>(t0 + t + i - position);
      score = fma(load(distance), splat(slope), score);
    }
    store(scores + t, score);
  }
}

// Scores of a tile -> probabilities, for tokens [begin, end) of it; the others become 0. Rescales the record.
inline void weigh_tile(float* scores, int32_t begin, int32_t end, int32_t dp, const QueryRecord& record) {
  F32 largest = splat(*record.max);
  for (int32_t t = begin / 16 * 16; t < end; t += 16) {
    largest = max(keep_lanes(load(scores + t), begin - t, end - t, splat(kLowestScore)), largest);
  }
  const float new_max = max_tree(largest);
  float rescale[16];
  store(rescale, exp16(splat(*record.max - new_max)));
  *record.max = new_max;
  F32 lanes = mul(load(record.lanes), splat(rescale[0]));
  for (int32_t t = 0; t < kKeyTile; t += 16) {
    F32 p = splat(0.0f);
    if (t < end && t + 16 > begin) {
      p = round_bf16(exp16(sub(load(scores + t), splat(new_max))));
      p = keep_lanes(p, begin - t, end - t, splat(0.0f));
    }
    store(scores + t, p);
    lanes = add(lanes, p);
  }
  store(record.lanes, lanes);
  if (rescale[0] == 1.0f) return;
  for (int32_t d = 0; d < dp; d += 16) store(record.o + d, mul(load(record.o + d), splat(rescale[0])));
}

inline const int32_t* page_of(const KvPages& pages, int32_t page, size_t offset) {
  const std::byte* block = pages.base + static_cast<size_t>(pages.block_table[page]) * pages.block_bytes;
  return reinterpret_cast<const int32_t*>(block + offset);
}

// Pages [begin, end), all of the key tile that starts at token t0.
struct TilePages {
  int32_t t0;
  int32_t begin;
  int32_t end;
};

// The matrix products of attention on lanes. An instruction set with tile registers brings its own.
struct LaneProducts {
  // Called when s.q holds the queries of a chunk.
  void load(const AttendScratch&, int32_t, int32_t) {}

  // s.scores: of the tile's tokens, for n queries.
  void scores(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* k = page_of(a.pages, page, a.pages.k_offset);
      float* scores = s.scores + (page * kPageTokens - pages.t0);
      score_queries<kQueryTile>(k, s.q, dp, n, scores);
      score_queries<kQueryTile>(k + dp * 8, s.q, dp, n, scores + 16);
    }
  }

  // The outputs of s.split += s.scores, now probabilities, times the values of the tile's tokens.
  void values(const AttendArgs& a, TilePages pages, int32_t n, const AttendScratch& s) {
    const int32_t dp = padded_dim(a.head_dim);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const int32_t* v = page_of(a.pages, page, a.pages.v_offset);
      const float* p = s.scores + (page * kPageTokens - pages.t0);
      for (int32_t d = 0; d < dp; d += 16) {
        add_values_of<kQueryTile>(v + d * 16, p, dp + kRecordExtra, n, s.split + d);
      }
    }
  }
};

template <class Products>
inline void attend_tile(const AttendArgs& a, QueryChunk chunk, TilePages pages, const AttendScratch& s,
                        Products& products) {
  const int32_t dp = padded_dim(a.head_dim);
  products.scores(a, pages, chunk.n, s);
  for (int32_t i = 0; i < chunk.n; ++i) {
    const int32_t position = position_of(a, chunk.first + i);
    const int32_t begin = window_begin(a, position) - pages.t0;
    const int32_t end = position + 1 - pages.t0;
    if (a.softcap != 0.0f || a.slopes != nullptr) {
      adjust_scores(a, chunk.first + i, pages.t0, s.scores + i * kKeyTile);
    }
    weigh_tile(s.scores + i * kKeyTile, begin < 0 ? 0 : begin, end > kKeyTile ? kKeyTile : end, dp,
               record_of(s.split, dp, i));
  }
  products.values(a, pages, chunk.n, s);
}

// The chunk's state over one split, in s.split. REQUIRES: s.q is loaded.
template <class Products>
inline void run_split(const AttendArgs& a, QueryChunk chunk, int32_t split, const AttendScratch& s,
                      Products& products) {
  const int32_t dp = padded_dim(a.head_dim);
  reset_records(s.split, dp, chunk.n);
  const int32_t last = position_of(a, chunk.first + chunk.n - 1);
  const int32_t oldest = window_begin(a, position_of(a, chunk.first));
  const int32_t split_begin = split * kSplitTokens;
  const int32_t end = last + 1 < split_begin + kSplitTokens ? last + 1 : split_begin + kSplitTokens;
  for (int32_t t0 = split_begin; t0 < end; t0 += kKeyTile) {
    if (t0 + kKeyTile <= oldest) continue;
    const int32_t tile_end = t0 + kKeyTile < end ? t0 + kKeyTile : end;
    const int32_t begin = oldest > t0 ? oldest : t0;
    const TilePages pages = {t0, begin / kPageTokens, (tile_end + kPageTokens - 1) / kPageTokens};
    attend_tile(a, chunk, pages, s, products);
  }
  for (int32_t i = 0; i < chunk.n; ++i) {
    const QueryRecord record = record_of(s.split, dp, i);
    *record.sum = sum_tree(load(record.lanes));
  }
}

// total = total and then split, for n queries.
inline void combine_records(float* total, float* split, int32_t dp, int32_t n) {
  for (int32_t i = 0; i < n; ++i) {
    const QueryRecord t = record_of(total, dp, i);
    const QueryRecord s = record_of(split, dp, i);
    const float new_max = *t.max > *s.max ? *t.max : *s.max;
    float old_scale[16];
    float new_scale[16];
    store(old_scale, exp16(splat(*t.max - new_max)));
    store(new_scale, exp16(splat(*s.max - new_max)));
    *t.max = new_max;
    *t.sum = fma1(*s.sum, new_scale[0], *t.sum * old_scale[0]);
    for (int32_t d = 0; d < dp; d += 16) {
      store(t.o + d, fma(load(s.o + d), splat(new_scale[0]), mul(load(t.o + d), splat(old_scale[0]))));
    }
  }
}

inline void write_queries(const AttendArgs& a, QueryChunk chunk, int32_t dp, float* total) {
  for (int32_t i = 0; i < chunk.n; ++i) {
    const int32_t query = chunk.first + i;
    const QueryRecord record = record_of(total, dp, i);
    const float inverse = 1.0f / *record.sum;
    float* dst =
        a.dst + query / a.n_group_heads * a.dst_stride + static_cast<int64_t>(query % a.n_group_heads) * a.head_dim;
    for (int32_t d = 0; d < dp; d += 16) {
      store_part(dst + d, a.head_dim - d, mul(load(record.o + d), splat(inverse)));
    }
  }
}

inline QueryChunk next_chunk(const AttendArgs& a, int32_t first) {
  const int32_t left = a.n_rows * a.n_group_heads - first;
  return {first, left < kQueryChunk ? left : kQueryChunk};
}

template <class Products>
inline void attend(const AttendArgs& a, std::byte* scratch) {
  Products products;
  const int32_t dp = padded_dim(a.head_dim);
  const AttendScratch s(scratch, dp);
  const int32_t n_queries = a.n_rows * a.n_group_heads;
  for (int32_t first = 0; first < n_queries; first += kQueryChunk) {
    const QueryChunk chunk = next_chunk(a, first);
    load_queries(a, chunk, dp, s.q);
    products.load(s, dp, chunk.n);
    reset_records(s.total, dp, chunk.n);
    const int32_t begin = window_begin(a, position_of(a, first)) / kSplitTokens;
    const int32_t end = position_of(a, first + chunk.n - 1) / kSplitTokens + 1;
    for (int32_t split = begin; split < end; ++split) {
      run_split(a, chunk, split, s, products);
      combine_records(s.total, s.split, dp, chunk.n);
    }
    write_queries(a, chunk, dp, s.total);
  }
}

template <class Products>
inline void attend_split(const AttendArgs& a, int32_t split, std::byte* partial, std::byte* scratch) {
  Products products;
  const int32_t dp = padded_dim(a.head_dim);
  const AttendScratch s(scratch, dp);
  const size_t record = static_cast<size_t>(dp + kRecordExtra) * sizeof(float);
  const int32_t n_queries = a.n_rows * a.n_group_heads;
  for (int32_t first = 0; first < n_queries; first += kQueryChunk) {
    const QueryChunk chunk = next_chunk(a, first);
    load_queries(a, chunk, dp, s.q);
    products.load(s, dp, chunk.n);
    run_split(a, chunk, split, s, products);
    std::memcpy(partial + static_cast<size_t>(first) * record, s.split, static_cast<size_t>(chunk.n) * record);
  }
}

inline void attend_combine(const AttendArgs& a, const std::byte* partials, std::byte* scratch) {
  const int32_t dp = padded_dim(a.head_dim);
  const AttendScratch s(scratch, dp);
  const size_t record = static_cast<size_t>(dp + kRecordExtra) * sizeof(float);
  const int32_t n_queries = a.n_rows * a.n_group_heads;
  const SplitRange range = splits_of_rows(a);
  for (int32_t first = 0; first < n_queries; first += kQueryChunk) {
    const QueryChunk chunk = next_chunk(a, first);
    reset_records(s.total, dp, chunk.n);
    for (int32_t i = 0; i < range.end - range.first; ++i) {
      const std::byte* src = partials + static_cast<size_t>(i) * attend_partial_bytes(n_queries, a.head_dim);
      std::memcpy(s.split, src + static_cast<size_t>(first) * record, static_cast<size_t>(chunk.n) * record);
      combine_records(s.total, s.split, dp, chunk.n);
    }
    write_queries(a, chunk, dp, s.total);
  }
}

inline uint32_t bf16_pair(float low, float high) {
  return static_cast<uint32_t>(f32_to_bf16(low)) | (static_cast<uint32_t>(f32_to_bf16(high)) << 16);
}

inline void store_key(const float* k, int32_t head_dim, int32_t slot, uint32_t* page) {
  uint32_t* column = page + slot / 16 * padded_dim(head_dim) * 8 + slot % 16;
  for (int32_t d = 0; d < head_dim; d += 2) column[d * 8] = bf16_pair(k[d], d + 1 < head_dim ? k[d + 1] : 0.0f);
}

inline void store_value(const float* v, int32_t head_dim, int32_t slot, uint16_t* page) {
  for (int32_t d = 0; d < head_dim; ++d) {
    page[((d / 16 * 16 + slot / 2) * 16 + d % 16) * 2 + slot % 2] = f32_to_bf16(v[d]);
  }
}

inline void store_kv(const StoreKvArgs& a) {
  const size_t bytes = kv_page_bytes(a.head_dim);
  for (int32_t i = 0; i < a.n_rows; ++i) {
    const int32_t position = a.first_position + i;
    const int32_t slot = position % kPageTokens;
    const auto block = static_cast<size_t>(a.pages.block_table[position / kPageTokens]);
    std::byte* k = a.pages.base + block * a.pages.block_bytes + a.pages.k_offset;
    std::byte* v = a.pages.base + block * a.pages.block_bytes + a.pages.v_offset;
    if (slot == 0) {
      std::memset(k, 0, bytes);
      std::memset(v, 0, bytes);
    }
    store_key(a.k + i * a.stride, a.head_dim, slot, reinterpret_cast<uint32_t*>(k));
    store_value(a.v + i * a.stride, a.head_dim, slot, reinterpret_cast<uint16_t*>(v));
  }
}
