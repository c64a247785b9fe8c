// Attention of many queries: each warp has 8 of its own, and all warps read the same keys and values, which come in
// stages through a ring in shared memory. A stage of keys has a tile and 32 dims, one of values a page and 128 dims; a
// lane sums 4 tokens' scores or 4 dims' outputs of the warp's queries.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_encode.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_ring.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/attend_sums.h"
#include "backend/cuda/kernels/attend_words.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {
namespace attention {

constexpr auto kWeightStride = static_cast<uint32_t>(weight_stride(kWarpQueries));
constexpr auto kBlockWords = static_cast<uint32_t>(weight_words(kWarpQueries));

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

// The same of codes: a warp's queries multiply a stage.
struct CodeStages {
  const AttendBlocksArgs& args;
  const WarpState& s;
  SeenPages values;
  int32_t n_blocks;  // of values' dims that share scales
  CodeSums<kWarpQueries> sums;

  CANDOR_DEVICE CodeStages(const AttendBlocksArgs& blocks, const AttendBlock& b, const WarpState& state)
      : args(blocks),
        s(state),
        values(pages_at(blocks.rows, b, blocks.rows.pages.v_offset)),
        n_blocks(dim_blocks(padded_dim(blocks.rows.value_dim))) {}

  CANDOR_DEVICE Shared<uint32_t> words() const { return shared<uint32_t>(static_cast<size_t>(args.words_at)); }
  CANDOR_DEVICE Shared<uint32_t> queries() const { return shared<uint32_t>(static_cast<size_t>(args.queries_at)); }
  // Of block i of the chunk; of another one where there is none, whose dims nobody wants.
  CANDOR_DEVICE uint32_t words_at(int32_t chunk, int32_t i) const {
    const auto own = static_cast<uint32_t>(chunk * kChunkBlocks + i < n_blocks ? i : 0);
    return (warp() * static_cast<uint32_t>(kChunkBlocks) + own) * kBlockWords;
  }
  CANDOR_DEVICE WeightPlace weights(int32_t chunk, int32_t i, uint32_t r) const {
    return {words(), words_at(chunk, i), kWarpQueries, r};
  }
  // Of the lane's dim j, in the chunk.
  CANDOR_DEVICE int32_t block_of(const StageCursor& at, int32_t j) const {
    if (args.rows.is_latent) return j / 2 * 2 + lane_number() / 16;
    return lane_number() / 4 % (kPieces / at.n_pages) / 2;
  }

  CANDOR_DEVICE void add(const Stage& stage, const StageCursor& at, TileSums& scores) {
    if (at.is_key()) return add_keys(stage, at, scores);
    if (at.begins_chunk()) begin_chunk(at);
    add_values(stage, at);
    if (at.ends_chunk()) end_chunk(at);
  }

 private:
  // Keys: to the scores.
  CANDOR_DEVICE void add_keys(const Stage& stage, const StageCursor& at, TileSums& scores) {
    const auto n = static_cast<uint32_t>(args.n_queries);
    const auto dp = static_cast<uint32_t>(padded_dim(args.rows.head_dim));
    const auto d = static_cast<uint32_t>(at.i * kStageDims);
    const uint32_t n_dims = dp - d < kStageDims ? dp - d : kStageDims;
    sums.clear();
    multiply_codes<kWarpQueries>(CodeReader(stage, lane() / 4), {queries(), d / 2 * n + s.first, n}, n_dims / 2, sums);
    float scales[4];
    load_key_scales(stage, lane() / 4, scales);
    CANDOR_UNROLL
    for (uint32_t r = 0; r < kWarpQueries; ++r) {
      const float scale = float_of(queries()[(dp / 2 + static_cast<uint32_t>(at.i)) * n + s.first + r]);
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) {
        scores[r][j] = fma_rn(to_float_rn(sums.of[r][j]), mul_rn(scales[j], scale), scores[r][j]);
      }
    }
  }

  // Of the lane's 4 tokens.
  CANDOR_DEVICE void load_scales(const StageCursor& at, int32_t block, float (&scales)[4]) const {
    const int32_t page = at.tile * kTilePages + lane_number() / 8;
    const bool is_stored = block < n_blocks && at.pages.holds(page);
    const auto* halves = reinterpret_cast<const uint16_t*>(is_stored ? values.at(page) : nullptr);
    CANDOR_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      scales[j] = is_stored ? half_to_float(halves[block * kPageTokens + lane_number() % 8 * 4 + j]) : 0.0f;
    }
  }

  // The tile's weights become words for the blocks of a chunk.
  CANDOR_DEVICE void begin_chunk(const StageCursor& at) {
    float scales[kChunkBlocks][4];
    CANDOR_UNROLL
    for (int32_t i = 0; i < kChunkBlocks; ++i) load_scales(at, at.chunk * kChunkBlocks + i, scales[i]);
    TokenShares tokens[kChunkBlocks];
    TokenRange before{-1, -1};
    const auto first = static_cast<int32_t>(4 * lane()) + at.tile * kKeyTile;
    sync_warp();
    for (uint32_t r = 0; r < kWarpQueries; ++r) {
      const TokenRange seen = s.query(r).seen;
      if (seen.begin != before.begin || seen.end != before.end) {
        CANDOR_UNROLL
        for (int32_t i = 0; i < kChunkBlocks; ++i) tokens[i].set(scales[i], seen, first);
      }
      before = seen;
      float p[4];
      CANDOR_UNROLL
      for (uint32_t j = 0; j < 4; ++j) {
        p[j] = s.weights[s.weights_at() + (2 * lane() + j / 2) * kWeightStride + 2 * r + j % 2];
      }
      const float largest = normalize_weights(p);
      CANDOR_UNROLL
      for (int32_t i = 0; i < kChunkBlocks; ++i) {
        if (at.chunk * kChunkBlocks + i < n_blocks) weights(at.chunk, i, r).store(p, largest, tokens[i]);
      }
    }
    sync_warp();
    sums.clear();
  }

  CANDOR_DEVICE void add_values(const Stage& stage, const StageCursor& at) {
    const auto of_tile = static_cast<uint32_t>(at.i - at.tile * kTilePages);
    constexpr uint32_t kPageWords = kPageTokens / 2 * kWarpQueries;
    if (args.rows.is_latent) {
      const uint32_t at_page = of_tile * kPageWords;
      const WordPlace w[2] = {{words(), words_at(at.chunk, block_of(at, 0)) + at_page, kWarpQueries},
                              {words(), words_at(at.chunk, block_of(at, 2)) + at_page, kWarpQueries}};
      return multiply_latent_codes<kWarpQueries>(stage, w, sums);
    }
    const bool is_second = at.n_pages == 2 && lane() >= 16;
    const ValuePages pages{at.i, at.n_pages, at.chunk};
    const bool is_filled = pages.group_of(lane_number() / 4, args.rows.head_dim) >= 0;
    if (!is_filled || (is_second && at.i + 1 >= at.pages.end)) return;
    const uint32_t begin = words_at(at.chunk, block_of(at, 0)) + (of_tile + (is_second ? 1 : 0)) * kPageWords;
    multiply_codes<kWarpQueries>(CodeReader(stage, lane() / 4), {words(), begin, kWarpQueries}, kPageTokens / 2, sums);
  }

  // To the outputs. Where two pages stand side by side lanes 0 to 15 have the dims, of both.
  CANDOR_DEVICE void end_chunk(const StageCursor& at) const {
    for (uint32_t r = 0; r < kWarpQueries; ++r) {
      int32_t total[4];
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) total[j] = sums.of[r][j];
      if (at.n_pages == 2) {
        CANDOR_UNROLL
        for (int j = 0; j < 4; ++j) total[j] += shuffle_xor(total[j], 16);
      }
      const float first = weights(at.chunk, block_of(at, 0), r).factor();
      const float second = weights(at.chunk, block_of(at, 2), r).factor();
      float x[4];
      load4(s.outputs, s.own_outputs(r, static_cast<uint32_t>(at.chunk)), x);
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = fma_rn(to_float_rn(total[j]), j < 2 ? first : second, x[j]);
      store4(s.outputs, s.own_outputs(r, static_cast<uint32_t>(at.chunk)), x);
    }
  }
};

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

// What a stage does to a warp's scores, in x, and to its outputs.
template <class Rows>
struct NumberStages {
  const AttendBlocksArgs& args;
  const WarpState& s;
  uint32_t seen = 0;  // pages

  CANDOR_DEVICE NumberStages(const AttendBlocksArgs& blocks, const AttendBlock&, const WarpState& state)
      : args(blocks), s(state) {}

  CANDOR_DEVICE void add(const Stage& stage, const StageCursor& at, TileSums& x) {
    if (at.begins_chunk()) begin_chunk(at, x);
    PairSums<kWarpQueries> sums;
    multiply_stage<Rows>(args.rows, stage, at, weights_of(args, s, at), sums);
    if (at.is_key() || at.n_pages == 1) {
      sums.add_to(x, at.is_key() ? ~0u : seen >> (at.i - at.tile * kTilePages));
    } else {
      sums.add_halves_to(x, seen_pair(seen, at));
    }
    if (at.ends_chunk()) s.store_outputs(static_cast<uint32_t>(at.chunk), x);
  }

 private:
  CANDOR_DEVICE void begin_chunk(const StageCursor& at, TileSums& x) {
    if (at.chunk == 0) seen = seen_pages(s, at.tile);
    s.load_outputs(static_cast<uint32_t>(at.chunk), x);
  }
};

template <class Pages>
CANDOR_DEVICE void load_tile_queries(const AttendBlocksArgs& args, const AttendBlock& b) {
  if constexpr (kIsQ8<Pages>) {
    encode_queries(args.rows, b, shared<uint32_t>(static_cast<size_t>(args.queries_at)), args.n_queries);
  } else {
    load_queries<typename Pages::Rows>(args.rows, b, shared<float>(static_cast<size_t>(args.queries_at)),
                                       args.n_queries);
  }
}

template <class Pages, class Stages>
CANDOR_DEVICE void attend_tiles(const AttendBlocksArgs& args) {
  using Rows = typename Pages::Rows;
  const AttendBlock b = block_of(args);
  if (b.tiles.is_empty()) return;
  StageRing<Pages> ring(args, b);
  WarpState s(args);
  load_tile_queries<Pages>(args, b);
  store_places(args.rows, b, s.places, args.n_queries);
  const bool is_idle = static_cast<int32_t>(s.first) >= b.n_queries();
  Stages stages(args, b, s);
  Total total;
  TileSums x;
  for (StageCursor at(args.rows, b); !at.is_behind_last(); at.advance()) {
    const Stage stage = ring.next();
    if (is_idle) continue;
    if (at.begins_tile()) {
      if (begins_split(b, at.tile)) s.clear();
      CANDOR_UNROLL
      for (uint32_t i = 0; i < kWarpQueries * 4; ++i) x[i / 4][i % 4] = 0.0f;
    }
    stages.add(stage, at, x);
    if (at.ends_keys()) weigh_tile<Rows>(s, at.tile, x);
    if (at.ends_tile() && ends_split(b, at.tile)) end_splits<Rows>(args, b, at.tile, s, total);
  }
  wait_async<0>();
}

}  // namespace attention

CANDOR_BOUNDED_KERNEL(attend_tiles_bf16, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::Bf16Pages, attention::NumberStages<attention::PairRows>>(args);
}
CANDOR_BOUNDED_KERNEL(attend_tiles_f32, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::F32Pages, attention::NumberStages<attention::WideRows>>(args);
}
CANDOR_BOUNDED_KERNEL(attend_tiles_q8, AttendBlocksArgs, 32 * attention::kMostWarps, 1) {
  attention::attend_tiles<attention::Q8Pages, attention::CodeStages>(args);
}

}  // namespace candor::backend::cuda
