// Attention over K/V pages (kernels/attend.h) as flash attention: 128 tokens of keys (a key tile) at a time, a running
// maximum and sum, and partial results for every 2048 tokens (a split), at fixed positions. Queries are pairs (row,
// head of the group), numbered row * n_group_heads + head; a chunk of up to 32 passes over the keys together, each in
// its own order of operations.

constexpr int32_t kQueryChunk = 32;
constexpr float kLowestScore = -1e30f;  // where the running maximum starts; exp(kLowestScore - x) is 0

// A query's state: o[Dp], l[16], then the running maximum and the sum of l.
struct QueryRecord {
  float* o;
  float* lanes;
  float* max;
  float* sum;
};

inline QueryRecord record_of(float* records, int32_t dp, int32_t i) {
  float* o = records + static_cast<int64_t>(i) * (dp + kRecordExtra);
  return {o, o + dp, o + dp + 16, o + dp + 17};
}

inline void reset_records(float* records, int32_t dp, int32_t n) {
  std::memset(records, 0, static_cast<size_t>(n) * static_cast<size_t>(dp + kRecordExtra) * sizeof(float));
  for (int32_t i = 0; i < n; ++i) *record_of(records, dp, i).max = kLowestScore;
}

struct AttendScratch {
  float* q;             // [kQueryChunk][Dp], rounded to bf16 where pages are bf16
  float* q_tiles;       // the same numbers, as the lanes' products take them
  float* scores;        // [kQueryChunk][kKeyTile]; on lanes then probabilities
  float* split;         // [kQueryChunk] records
  float* total;         // [kQueryChunk] records
  uint16_t* halves;     // [kQueryChunk][Dp + kKeyTile]: room for q and probabilities in 16 bits
  std::byte* expanded;  // [page of a tile][K, V]: as many bytes as pages of bf16 have
  AttendScratch(std::byte* base, int32_t dp)
      : q(reinterpret_cast<float*>(base)),
        q_tiles(q + kQueryChunk * dp),
        scores(q_tiles + kQueryChunk * dp),
        split(scores + kQueryChunk * kKeyTile),
        total(split + kQueryChunk * (dp + kRecordExtra)),
        halves(reinterpret_cast<uint16_t*>(total + kQueryChunk * (dp + kRecordExtra))),
        expanded(reinterpret_cast<std::byte*>(halves + kQueryChunk * (dp + kKeyTile))) {
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
inline const float* query_row(const AttendArgs& a, int32_t query) {
  const int32_t row = query / a.n_group_heads;
  const float* heads = a.q + (a.q_rows == nullptr ? row : a.q_rows[row]) * a.q_stride;
  return heads + static_cast<int64_t>(query % a.n_group_heads) * a.head_dim;
}

template <class Products>
inline void load_queries(const AttendArgs& a, QueryChunk chunk, int32_t dp, float* q) {
  for (int32_t i = 0; i < chunk.n; ++i) {
    const float* src = query_row(a, chunk.first + i);
    if (a.pages.rotated_dims > 0) {
      std::memcpy(q + i * dp, src, static_cast<size_t>(a.head_dim) * sizeof(float));
      rotate(q + i * dp, a.head_dim, a.pages.rotated_dims);
      src = q + i * dp;
    }
    for (int32_t d = 0; d < dp; d += 16) {
      const F32 scaled = mul(load_part(src + d, a.head_dim - d, 0.0f), splat(a.scale));
      if constexpr (Products::kRoundsOperands) {
        store(q + i * dp + d, round_bf16(scaled));
      } else {
        store(q + i * dp + d, scaled);
      }
    }
  }
}

// Of tokens t to t + 15, seen from the query's position.
inline F32 distance_biases(const AttendArgs& a, int32_t query, int32_t distance) {
  const int32_t reach = a.bias_reach;
  const float* middle = a.biases + static_cast<int64_t>(query % a.n_group_heads) * (2 * reach + 1) + reach;
  float biases[16];
  for (int32_t i = 0; i < 16; ++i) {
    const int32_t d = distance + i;
    biases[i] = middle[d < -reach ? -reach : d > reach ? reach : d];
  }
  return load(biases);
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
      for (int i = 0; i < 16; ++i) distance[i] = static_cast<float>(-std::abs(t0 + t + i - position));
      score = fma(load(distance), splat(slope), score);
    }
    if (a.biases != nullptr) score = add(score, distance_biases(a, query, t0 + t - position));
    store(scores + t, score);
  }
}

// Tokens [begin, end) of a tile.
struct SeenTokens {
  int32_t begin;
  int32_t end;
  bool any_from(int32_t t) const { return t < end && t + 16 > begin; }
  F32 keep(F32 x, int32_t t, float other) const { return keep_lanes(x, begin - t, end - t, splat(other)); }
  bool is_equal(const SeenTokens& other) const { return begin == other.begin && end == other.end; }
};
struct AllTokens {
  static constexpr bool any_from(int32_t) { return true; }
  static F32 keep(F32 x, int32_t, float) { return x; }
};

// The running maximum with a tile's scores.
template <class Seen>
inline float largest_score(const float* scores, const Seen& seen, float old_max) {
  F32 largest[2] = {splat(old_max), splat(old_max)};
#pragma GCC unroll 1
  for (int32_t t = 0; t < kKeyTile; t += 32) {
    largest[0] = max(seen.keep(load(scores + t), t, kLowestScore), largest[0]);
    largest[1] = max(seen.keep(load(scores + t + 16), t + 16, kLowestScore), largest[1]);
  }
  return max_tree(max(largest[0], largest[1]));
}

// To a maximum that is greater.
inline void rescale_record(const QueryRecord& record, int32_t dp, float new_max) {
  float rescale[16];
  store(rescale, exp16(splat(*record.max - new_max)));
  *record.max = new_max;
  store(record.lanes, mul(load(record.lanes), splat(rescale[0])));
  for (int32_t d = 0; d < dp; d += 16) store(record.o + d, mul(load(record.o + d), splat(rescale[0])));
}

template <class Products, class Seen>
CANDOR_INLINE F32 weigh_tokens(const float* scores, int32_t t, const Seen& seen, float max) {
  if (!seen.any_from(t)) return splat(0.0f);
  F32 weight = exp16_capped(sub(load(scores + t), splat(max)));
  if constexpr (Products::kRoundsOperands) weight = round_normal_bf16(weight);
  return seen.keep(weight, t, 0.0f);
}

// Scores of query i of a chunk -> probabilities, where Products wants them; 0 for tokens that it does not see. Rescales
// the query's record.
template <class Products, class Seen>
inline void weigh_tile(const AttendScratch& s, int32_t dp, int32_t i, const Seen& seen) {
  const float* scores = s.scores + i * kKeyTile;
  const QueryRecord record = record_of(s.split, dp, i);
  const float new_max = largest_score(scores, seen, *record.max);
  if (new_max != *record.max) rescale_record(record, dp, new_max);
  const auto place = Products::place_of_weights(s, dp, i);
  F32 lanes = load(record.lanes);
#pragma GCC unroll 1
  for (int32_t t = 0; t < kKeyTile; t += 32) {
    const F32 low = weigh_tokens<Products>(scores, t, seen, new_max);
    const F32 high = weigh_tokens<Products>(scores, t + 16, seen, new_max);
    lanes = add(add(lanes, low), high);
    Products::store_weights(low, high, place + t);
  }
  store(record.lanes, lanes);
}

// This uses what stands above it.
// clang-format off
#include "kernels/generic/attend_expand.inl.h"
#include "kernels/generic/attend_lanes.inl.h"
#include "kernels/generic/attend_int8.inl.h"
// clang-format on

template <class Products>
inline void attend_tile(const AttendArgs& a, QueryChunk chunk, TilePages pages, const AttendScratch& s,
                        Products& products) {
  const int32_t dp = padded_dim(a.head_dim);
  products.scores(a, pages, chunk.n, s);
  for (int32_t i = 0; i < chunk.n; ++i) {
    const int32_t position = position_of(a, chunk.first + i);
    const SeenTokens seen = {oldest_seen(a, position) - pages.t0, seen_end(a, position) - pages.t0};
    products.begin_weights(i, seen);
    if (a.softcap != 0.0f || a.slopes != nullptr || a.biases != nullptr) {
      adjust_scores(a, chunk.first + i, pages.t0, s.scores + i * kKeyTile);
    }
    if (seen.begin <= 0 && seen.end >= kKeyTile) {
      weigh_tile<Products>(s, dp, i, AllTokens{});
    } else {
      weigh_tile<Products>(s, dp, i, seen);
    }
  }
  const bool makes_values = a.latent_dim > 0 && !has_codes(a.pages);
  const AttendArgs values = makes_values ? latent_values(a, pages, s) : a;
  products.values(values, pages, chunk.n, s);
}

inline bool resumes_split(const AttendArgs& a, int32_t split) {
  return a.resume_token > split * kSplitTokens;
}

// The chunk's state over one split, in s.split. REQUIRES: s.q is loaded; where the split is resumed, s.split.
template <class Products>
inline void run_split(const AttendArgs& a, QueryChunk chunk, int32_t split, const AttendScratch& s,
                      Products& products) {
  const int32_t dp = padded_dim(a.head_dim);
  const bool resumes = resumes_split(a, split);
  if (!resumes) reset_records(s.split, dp, chunk.n);
  const int32_t n_seen = seen_end(a, position_of(a, chunk.first + chunk.n - 1));
  const int32_t n_tokens = a.end_token > 0 && a.end_token < n_seen ? a.end_token : n_seen;
  const int32_t oldest = oldest_seen(a, position_of(a, chunk.first));
  const int32_t split_begin = split * kSplitTokens;
  const int32_t end = n_tokens < split_begin + kSplitTokens ? n_tokens : split_begin + kSplitTokens;
  for (int32_t t0 = resumes ? a.resume_token : split_begin; t0 < end; t0 += kKeyTile) {
    if (t0 + kKeyTile <= oldest) continue;
    const int32_t tile_end = t0 + kKeyTile < end ? t0 + kKeyTile : end;
    const int32_t begin = oldest > t0 ? oldest : t0;
    const int32_t first_page = begin / kPageTokens;
    const int32_t end_page = (tile_end + kPageTokens - 1) / kPageTokens;
    const int32_t n_after = (n_tokens + kPageTokens - 1) / kPageTokens - end_page;
    const int32_t next = n_after > 0 ? end_page : first_page;
    const int32_t n_next = n_after <= 0 ? 1 : n_after < kTilePages ? n_after : kTilePages;
    const TilePages pages = {t0, first_page, end_page, next, next + n_next};
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

// The record with one more score, of a token without a value.
inline void add_sink(const QueryRecord& record, int32_t dp, float sink) {
  const float new_max = *record.max > sink ? *record.max : sink;
  float old_scale[16];
  float sink_weight[16];
  store(old_scale, exp16(splat(*record.max - new_max)));
  store(sink_weight, exp16(splat(sink - new_max)));
  *record.max = new_max;
  *record.sum = fma1(*record.sum, old_scale[0], sink_weight[0]);
  for (int32_t d = 0; d < dp; d += 16) store(record.o + d, mul(load(record.o + d), splat(old_scale[0])));
}

inline void write_queries(const AttendArgs& a, QueryChunk chunk, int32_t dp, float* total) {
  for (int32_t i = 0; i < chunk.n; ++i) {
    const int32_t query = chunk.first + i;
    const QueryRecord record = record_of(total, dp, i);
    if (a.sinks != nullptr) add_sink(record, dp, a.sinks[query % a.n_group_heads]);
    float inverse = 1.0f / *record.sum;
    if (a.pages.rotated_dims > 0) {
      for (int32_t d = 0; d < a.value_dim(); d += 16) store(record.o + d, mul(load(record.o + d), splat(inverse)));
      rotate(record.o, a.value_dim(), a.pages.rotated_dims);
      inverse = 1.0f;
    }
    float* dst =
        a.dst + query / a.n_group_heads * a.dst_stride + static_cast<int64_t>(query % a.n_group_heads) * a.value_dim();
    for (int32_t d = 0; d < a.value_dim(); d += 16) {
      store_part(dst + d, a.value_dim() - d, mul(load(record.o + d), splat(inverse)));
    }
  }
}

inline QueryChunk next_chunk(const AttendArgs& a, int32_t first) {
  const int32_t left = a.n_rows * a.n_group_heads - first;
  return {first, left < kQueryChunk ? left : kQueryChunk};
}

template <class Products>
inline void attend_pages(const AttendArgs& a, std::byte* scratch) {
  Products products;
  const int32_t dp = padded_dim(a.head_dim);
  const AttendScratch s(scratch, dp);
  const int32_t n_queries = a.n_rows * a.n_group_heads;
  for (int32_t first = 0; first < n_queries; first += kQueryChunk) {
    const QueryChunk chunk = next_chunk(a, first);
    load_queries<Products>(a, chunk, dp, s.q);
    products.load(s, dp, chunk.n);
    reset_records(s.total, dp, chunk.n);
    const int32_t begin = oldest_seen(a, position_of(a, first)) / kSplitTokens;
    const int32_t end = (seen_end(a, position_of(a, first + chunk.n - 1)) - 1) / kSplitTokens + 1;
    for (int32_t split = begin; split < end; ++split) {
      run_split(a, chunk, split, s, products);
      combine_records(s.total, s.split, dp, chunk.n);
    }
    write_queries(a, chunk, dp, s.total);
  }
}

// Products are of bf16 pages; the others are left to vector instructions everywhere.
template <class Products>
inline void attend(const AttendArgs& a, std::byte* scratch) {
  if (has_codes(a.pages)) return attend_pages<CodeProducts>(a, scratch);
  if (a.pages.format == KvFormat::kF32) return attend_pages<LaneProductsOf<WidePage>>(a, scratch);
  attend_pages<Products>(a, scratch);
}

template <class Products>
inline void attend_split_pages(const AttendArgs& a, int32_t split, std::byte* partial, std::byte* scratch) {
  Products products;
  const int32_t dp = padded_dim(a.head_dim);
  const AttendScratch s(scratch, dp);
  const size_t record = static_cast<size_t>(dp + kRecordExtra) * sizeof(float);
  const int32_t n_queries = a.n_rows * a.n_group_heads;
  for (int32_t first = 0; first < n_queries; first += kQueryChunk) {
    const QueryChunk chunk = next_chunk(a, first);
    load_queries<Products>(a, chunk, dp, s.q);
    products.load(s, dp, chunk.n);
    std::byte* records = partial + static_cast<size_t>(first) * record;
    if (resumes_split(a, split)) std::memcpy(s.split, records, static_cast<size_t>(chunk.n) * record);
    run_split(a, chunk, split, s, products);
    std::memcpy(records, s.split, static_cast<size_t>(chunk.n) * record);
  }
}

template <class Products>
inline void attend_split(const AttendArgs& a, int32_t split, std::byte* partial, std::byte* scratch) {
  if (has_codes(a.pages)) return attend_split_pages<CodeProducts>(a, split, partial, scratch);
  if (a.pages.format == KvFormat::kF32) {
    return attend_split_pages<LaneProductsOf<WidePage>>(a, split, partial, scratch);
  }
  attend_split_pages<Products>(a, split, partial, scratch);
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
