// Attention of many queries: each warp has 8 of its own, and all warps read the same keys and values, which come in
// stages through a ring in shared memory. A stage of keys has a tile and 32 dims, one of values a page and 128 dims; a
// lane sums 4 tokens' scores or 4 dims' outputs of the warp's queries.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_codes.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/attend_sums.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {
namespace attention {

constexpr auto kWeightStride = static_cast<uint32_t>(weight_stride(kWarpQueries));

// Stages in the order in which they are read: of each tile keys by dims, then values by chunk and page.
struct StageCursor {
  const AttendBlock& block;
  int32_t n_keys;    // stages
  int32_t n_chunks;  // of values
  int32_t tile;
  int32_t chunk = -1;  // -1: keys
  int32_t i = 0;       // stage of keys, or page
  int32_t n_pages;     // of a stage of values
  TokenRange pages;

  CANDOR_DEVICE StageCursor(const AttendRowsArgs& a, const AttendBlock& b)
      : block(b),
        n_keys(key_stages(a.head_dim)),
        n_chunks(value_chunks(a.value_dim)),
        tile(b.tiles.begin),
        n_pages(a.is_latent || padded_dim(a.head_dim) > kChunkDims / 2 ? 1 : 2),
        pages(b.pages_of(tile, 1)) {}

  CANDOR_DEVICE bool is_behind_last() const { return tile >= block.tiles.end; }
  CANDOR_DEVICE bool is_key() const { return chunk < 0; }
  CANDOR_DEVICE bool begins_tile() const { return chunk < 0 && i == 0; }
  CANDOR_DEVICE bool ends_keys() const { return chunk < 0 && i + 1 == n_keys; }
  CANDOR_DEVICE bool begins_chunk() const { return chunk >= 0 && i == pages.begin; }
  CANDOR_DEVICE bool ends_chunk() const { return chunk >= 0 && i + n_pages >= pages.end; }
  CANDOR_DEVICE bool ends_tile() const { return ends_chunk() && chunk + 1 == n_chunks; }

  CANDOR_DEVICE void advance() {
    const bool is_end = ends_keys() || ends_chunk();
    i += is_key() ? 1 : n_pages;
    if (!is_end) return;
    i = pages.begin;
    if (++chunk < n_chunks) return;
    chunk = -1;
    i = 0;
    pages = block.pages_of(++tile, 1);
  }
};

// By all threads: a stage of codes as pairs of bf16.
template <bool is_key>
CANDOR_DEVICE void expand_rows(const Stage& from, const Stage& to) {
  const CodeRows::Reader<is_key> reader(from, lane() / 4);
  for (uint32_t pair = warp(); pair < kStageDims / 2; pair += n_warps()) {
    store16(to.words, to.at + lane() / 4 * piece_words(2) + pair * kRowWords + lane() % 4 * 4, reader.load_pairs(pair));
  }
}
CANDOR_DEVICE void expand_latent(const Stage& from, const Stage& to) {
  for (uint32_t i = thread(); i < kChunkDims * 4; i += n_threads()) {
    const uint32_t c = i % 4;
    const uint32_t row = i / 4 % (kChunkDims / 2);
    const uint32_t half = i / 4 / (kChunkDims / 2);
    const uint32_t codes = from.at + (half * kChunkDims + 2 * row) * kCodeRowWords + c;
    const uint32_t scales = from.at + kCodeScalesAt + row / 16 * kRowWords + half * 8 + 2 * c;
    const uint32_t first = from.words[codes];
    const uint32_t second = from.words[codes + kCodeRowWords];
    uint32_t w[4];
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 4; ++j) {
      const float s = scale_of(from.words[scales + j / 2], j % 2);
      w[j] = bf16_pair(mul_rn(code_of(first, j), s), mul_rn(code_of(second, j), s));
    }
    store16(to.words, to.at + latent_word<PairRows>(half, row, c), Uint4{w[0], w[1], w[2], w[3]});
  }
}

template <class Pages>
class StageRing {
 public:
  CANDOR_DEVICE StageRing(const AttendBlocksArgs& args, const AttendBlock& block)
      : args_(args.rows),
        keys_(pages_at(args.rows, block, args.rows.pages.k_offset)),
        values_(pages_at(args.rows, block, args.rows.pages.v_offset)),
        words_(shared<uint32_t>(static_cast<size_t>(args.keys_at))),
        asked_(args.rows, block) {
    for (int32_t i = 0; i + 1 < kRingStages; ++i) ask();
  }

  // The stage at the cursor, which comes to each in turn. All threads are done with the one before.
  CANDOR_DEVICE Stage next(const StageCursor& at) {
    wait_async<kRingStages - 2>();
    sync_block();
    const Stage stage = place(n_read_++ % kRingStages);
    if constexpr (kIsQ8<Pages>) {
      const Stage expanded = place(kRingStages);
      if (at.is_key()) {
        expand_rows<true>(stage, expanded);
      } else if (args_.is_latent) {
        expand_latent(stage, expanded);
      } else {
        expand_rows<false>(stage, expanded);
      }
      ask();
      sync_block();
      return expanded;
    }
    ask();
    return stage;
  }

 private:
  // kRingStages: behind the ring.
  CANDOR_DEVICE Stage place(int32_t i) const { return {words_, static_cast<uint32_t>(i * staged_words<Pages>())}; }

  CANDOR_DEVICE void ask() {
    if (!asked_.is_behind_last()) {
      stage(place(n_asked_ % kRingStages));
      asked_.advance();
    }
    commit_async();
    ++n_asked_;
  }

  CANDOR_DEVICE void stage(const Stage& to) {
    const int32_t i = asked_.i;
    if (asked_.is_key()) {
      stage_keys<Pages>(args_.head_dim, {to, i * kStageDims, 1}, keys_, asked_.tile * kTilePages);
    } else if (args_.is_latent) {
      stage_latent<Pages>(args_.head_dim, to, values_, {i, 1, asked_.chunk}, args_.value_dim);
    } else {
      stage_values<Pages>(args_.head_dim, to, values_, {i, asked_.n_pages, asked_.chunk});
    }
  }

  const AttendRowsArgs& args_;
  SeenPages keys_;
  SeenPages values_;
  Shared<uint32_t> words_;
  StageCursor asked_;
  int32_t n_asked_ = 0;
  int32_t n_read_ = 0;
};

using TileSums = float[kWarpQueries][4];

// A warp's queries over one split; lane / 4 is the lane's query. Its token modulo 16 is lane % 4 * 4 + j. Weights are
// in shared memory, [pair of tokens][query][2], and outputs, [query][chunk][lane][4].
struct WarpState {
  const AttendRowsArgs& args;
  uint32_t first;  // query
  uint32_t n_chunks;
  Shared<int32_t> places;
  Shared<float> weights;
  Shared<float> outputs;
  float max = kLowestScore;
  float lanes[4] = {};

  CANDOR_DEVICE WarpState(const AttendBlocksArgs& blocks)
      : args(blocks.rows),
        first(warp() * kWarpQueries),
        n_chunks(static_cast<uint32_t>(value_chunks(blocks.rows.value_dim))),
        places(shared<int32_t>(static_cast<size_t>(blocks.places_at))),
        weights(shared<float>(static_cast<size_t>(blocks.weights_at))),
        outputs(shared<float>(static_cast<size_t>(blocks.outputs_at))) {}

  CANDOR_DEVICE uint32_t weights_at() const { return warp() * kWarpWeights; }
  CANDOR_DEVICE uint32_t outputs_at(uint32_t r) const { return (first + r) * n_chunks * kChunkDims; }
  CANDOR_DEVICE uint32_t own_outputs(uint32_t r, uint32_t chunk) const {
    return outputs_at(r) + chunk * kChunkDims + 4 * lane();
  }
  CANDOR_DEVICE bool owns(uint32_t r) const { return lane() / 4 == r; }
  CANDOR_DEVICE Query query(uint32_t r) const { return load_place(places, first + r); }

  CANDOR_DEVICE void clear() {
    max = kLowestScore;
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) lanes[j] = 0.0f;
    for (uint32_t r = 0; r < kWarpQueries; ++r) {
      for (uint32_t chunk = 0; chunk < n_chunks; ++chunk) store16(outputs, own_outputs(r, chunk), Uint4{0, 0, 0, 0});
    }
  }

  // Query r to a greater maximum.
  CANDOR_DEVICE void rescale(uint32_t r, float old_max, float new_max) {
    const float part = exp_of(sub_rn(old_max, new_max));
    if (owns(r)) {
      max = new_max;
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) lanes[j] = mul_rn(lanes[j], part);
    }
    for (uint32_t chunk = 0; chunk < n_chunks; ++chunk) {
      float x[4];
      load4(outputs, own_outputs(r, chunk), x);
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = mul_rn(x[j], part);
      store4(outputs, own_outputs(r, chunk), x);
    }
  }

  CANDOR_DEVICE void load_outputs(uint32_t chunk, TileSums& x) const {
    CANDOR_UNROLL
    for (uint32_t r = 0; r < kWarpQueries; ++r) load4(outputs, own_outputs(r, chunk), x[r]);
  }
  CANDOR_DEVICE void store_outputs(uint32_t chunk, const TileSums& x) const {
    CANDOR_UNROLL
    for (uint32_t r = 0; r < kWarpQueries; ++r) store4(outputs, own_outputs(r, chunk), x[r]);
  }

  // Of the lane's query.
  CANDOR_DEVICE float sum() const {
    float half[4];
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) {
      half[j] = add_rn(lanes[j], shuffle_xor(lanes[j], 2));
      half[j] = add_rn(half[j], shuffle_xor(half[j], 1));
    }
    return add_rn(add_rn(half[0], half[2]), add_rn(half[1], half[3]));
  }
};

// Scores of tokens 4 * lane + j to where their weights will be.
CANDOR_DEVICE void store_scores(const WarpState& s, const TileSums& scores) {
  CANDOR_UNROLL
  for (uint32_t r = 0; r < kWarpQueries; r += 2) {
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 4; j += 2) {
      store16(s.weights, s.weights_at() + (2 * lane() + j / 2) * kWeightStride + 2 * r,
              Uint4{bits_of(scores[r][j]), bits_of(scores[r][j + 1]), bits_of(scores[r + 1][j]),
                    bits_of(scores[r + 1][j + 1])});
    }
  }
}

// Step 4 for query r, whose scores become weights in their place.
template <class Rows>
CANDOR_DEVICE void weigh_query(WarpState& s, uint32_t r, int32_t t0) {
  const Query query = s.query(r);
  const int32_t first = t0 + static_cast<int32_t>(4 * lane());
  const uint32_t at = s.weights_at() + 2 * lane() * kWeightStride + 2 * r;
  float x[4];
  float greatest = kLowestScore;
  CANDOR_UNROLL
  for (uint32_t j = 0; j < 4; ++j) {
    const int32_t token = first + static_cast<int32_t>(j);
    x[j] = s.weights[at + j / 2 * kWeightStride + j % 2];
    if (adjusts_scores(s.args)) x[j] = adjust_score(s.args, query, token, x[j]);
    if (query.seen.holds(token)) greatest = elementary::max(x[j], greatest);
  }
  const float old_max = shuffle(s.max, 4 * r);
  const float new_max = elementary::max(warp_max(greatest), old_max);
  if (new_max != old_max) s.rescale(r, old_max, new_max);
  CANDOR_UNROLL
  for (uint32_t j = 0; j < 4; ++j) {
    const bool is_seen = query.seen.holds(first + static_cast<int32_t>(j));
    s.weights[at + j / 2 * kWeightStride + j % 2] = is_seen ? weight_of<Rows>(x[j], new_max) : 0.0f;
  }
}

template <class Rows>
CANDOR_DEVICE void weigh_tile(WarpState& s, int32_t tile, const TileSums& scores) {
  store_scores(s, scores);
  for (uint32_t r = 0; r < kWarpQueries; ++r) weigh_query<Rows>(s, r, tile * kKeyTile);
  sync_warp();
  for (uint32_t of16 = 0; of16 < kKeyTile / 16; ++of16) {
    const uint32_t at = s.weights_at() + (of16 * 8 + lane() % 4 * 2) * kWeightStride + lane() / 4 * 2;
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 4; ++j) s.lanes[j] = add_rn(s.lanes[j], s.weights[at + j / 2 * kWeightStride + j % 2]);
  }
}

// Bit 4 * r + i: query r sees some of the tile's page i.
CANDOR_DEVICE uint32_t seen_pages(const WarpState& s, int32_t tile) {
  const Query query = s.query(lane() / 4);
  const int32_t page = tile * kTilePages + static_cast<int32_t>(lane() % 4);
  return ballot(!query.seen.is_empty() && covered(query.seen, kPageTokens).holds(page));
}

// The same bits from the cursor's page on, without the next tile's.
CANDOR_DEVICE uint32_t seen_pair(uint32_t seen, const StageCursor& at) {
  const int32_t of_tile = at.i - at.tile * kTilePages;
  return seen >> of_tile & (of_tile + 1 < kTilePages ? 0x33333333u : 0x11111111u);
}

// What a stage is multiplied with; both kinds from the beginning of the block's memory, so that no address is chosen.
CANDOR_DEVICE PairWeights weights_of(const AttendBlocksArgs& args, const WarpState& s, const StageCursor& at) {
  const int32_t of_tile = at.i - at.tile * kTilePages;
  const bool is_second = at.n_pages == 2 && lane() >= 16 && of_tile + 1 < kTilePages;
  const auto page = static_cast<uint32_t>(is_second ? of_tile + 1 : of_tile);
  const auto stride = at.is_key() ? static_cast<uint32_t>(query_stride(args.n_queries)) : kWeightStride;
  const auto first = static_cast<uint32_t>(at.is_key() ? args.queries_at : args.weights_at) / 4;
  const uint32_t begin = at.is_key() ? static_cast<uint32_t>(at.i) * (kStageDims / 2) * stride + 2 * s.first
                                     : s.weights_at() + page * (kPageTokens / 2) * stride;
  return {shared<float>(0), first + begin, stride};
}

template <class Rows>
CANDOR_DEVICE void multiply_stage(const AttendRowsArgs& a, const Stage& stage, const StageCursor& at,
                                  const PairWeights& w, PairSums<kWarpQueries>& sums) {
  if (a.is_latent && !at.is_key()) return multiply_latent<Rows>(stage, w, sums);
  const int32_t dp = padded_dim(a.head_dim);
  const int32_t left = at.is_key() ? dp - at.i * kStageDims : kPageTokens;
  const auto own = static_cast<int32_t>(lane() / 4);
  const bool is_filled = at.is_key() || ValuePages{at.i, at.n_pages, at.chunk}.group_of(own, a.head_dim) >= 0;
  const uint32_t piece = is_filled ? lane() / 4 : 0;
  multiply_rows<Rows, true>(stage, piece, w, static_cast<uint32_t>(left < kStageDims ? left : kStageDims) / 2, sums);
}

template <class Rows>
CANDOR_DEVICE void end_splits(const AttendBlocksArgs& args, const AttendBlock& b, int32_t tile, const WarpState& s,
                              Total& own_total) {
  const float sum = s.sum();
  for (uint32_t r = 0; r < kWarpQueries; ++r) {
    Total total{shuffle(own_total.max, 4 * r), shuffle(own_total.sum, 4 * r)};
    const SplitEnd end{static_cast<int32_t>(s.first + r),
                       tile * kKeyTile / kSplitTokens,
                       {shuffle(s.max, 4 * r), shuffle(sum, 4 * r)},
                       s.outputs,
                       s.outputs_at(r)};
    end_split<Rows>(args, b, end, total);
    if (s.owns(r)) own_total = total;
  }
}

template <class Pages>
CANDOR_DEVICE void attend_tiles(const AttendBlocksArgs& args) {
  using Rows = typename Pages::Rows;
  const AttendBlock b = block_of(args);
  if (b.tiles.is_empty()) return;
  StageRing<Pages> ring(args, b);
  WarpState s(args);
  load_queries<Rows>(args.rows, b, shared<float>(static_cast<size_t>(args.queries_at)), args.n_queries);
  store_places(args.rows, b, s.places, args.n_queries);
  const bool is_idle = static_cast<int32_t>(s.first) >= b.n_queries();
  Total total;
  TileSums x;
  uint32_t seen = 0;
  for (StageCursor at(args.rows, b); !at.is_behind_last(); at.advance()) {
    const Stage stage = ring.next(at);
    if (is_idle) continue;
    if (at.begins_tile()) {
      if (begins_split(b, at.tile)) s.clear();
      CANDOR_UNROLL
      for (uint32_t i = 0; i < kWarpQueries * 4; ++i) x[i / 4][i % 4] = 0.0f;
    }
    if (at.begins_chunk()) s.load_outputs(static_cast<uint32_t>(at.chunk), x);
    PairSums<kWarpQueries> sums;
    multiply_stage<Rows>(args.rows, stage, at, weights_of(args, s, at), sums);
    if (at.is_key() || at.n_pages == 1) {
      sums.add_to(x, at.is_key() ? ~0u : seen >> (at.i - at.tile * kTilePages));
    } else {
      sums.add_halves_to(x, seen_pair(seen, at));
    }
    if (at.ends_keys()) {
      weigh_tile<Rows>(s, at.tile, x);
      seen = seen_pages(s, at.tile);
    }
    if (at.ends_chunk()) s.store_outputs(static_cast<uint32_t>(at.chunk), x);
    if (at.ends_tile() && ends_split(b, at.tile)) end_splits<Rows>(args, b, at.tile, s, total);
  }
  wait_async<0>();
}

}  // namespace attention

CANDOR_BOUNDED_KERNEL(attend_tiles_bf16, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::Bf16Pages>(args);
}
CANDOR_BOUNDED_KERNEL(attend_tiles_f32, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::F32Pages>(args);
}
CANDOR_BOUNDED_KERNEL(attend_tiles_q8, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::Q8Pages>(args);
}

}  // namespace candor::backend::cuda
