// Attention of many queries: each warp has 8 of its own, and all warps read the same keys and values, which come in
// stages through a ring in shared memory. A stage of keys has a tile and 32 dims, one of values a page and 128 dims; a
// lane sums 4 tokens' scores or 4 dims' outputs of the warp's queries.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {
namespace attention {

constexpr int32_t kWeightStride = weight_stride(kWarpQueries);

// The stages of all tiles in the order in which they are read: keys by dims, then values by chunk and page.
template <class Pages>
class StageRing {
 public:
  CANDOR_DEVICE StageRing(const AttendBlocksArgs& args, const AttendBlock& block)
      : args_(args.rows),
        block_(block),
        reader_(reader_of<Pages>(args.rows.head_dim)),
        keys_(pages_at(args.rows, block, args.rows.pages.k_offset)),
        values_(pages_at(args.rows, block, args.rows.pages.v_offset)),
        words_(shared<uint32_t>(args.keys_at)),
        tile_(block.tiles.begin) {
    for (int32_t i = 0; i + 1 < kRingStages; ++i) ask();
  }

  // The next stage. All threads are done with the one before.
  CANDOR_DEVICE Stage next() {
    wait_async<kRingStages - 2>();
    sync_block();
    ask();
    const Stage stage = place(n_read_);
    ++n_read_;
    return stage;
  }

 private:
  CANDOR_DEVICE Stage place(int32_t i) const {
    return {words_, static_cast<uint32_t>(i % kRingStages * stage_words<typename Pages::Rows>())};
  }

  CANDOR_DEVICE void ask() {
    if (tile_ < block_.tiles.end) {
      stage(place(n_asked_));
      const TokenRange pages = block_.pages_of(tile_, 1);
      const int32_t n_values = value_chunks(args_.value_dim) * (pages.end - pages.begin);
      if (++step_ == key_stages(args_.head_dim) + n_values) {
        step_ = 0;
        ++tile_;
      }
    }
    commit_async();
    ++n_asked_;
  }

  CANDOR_DEVICE void stage(const Stage& to) {
    const int32_t n_keys = key_stages(args_.head_dim);
    if (step_ < n_keys) return stage_keys<Pages>(reader_, to, keys_, tile_ * kTilePages, step_ * kStageDims);
    const TokenRange pages = block_.pages_of(tile_, 1);
    const int32_t n_pages = pages.end - pages.begin;
    const int32_t chunk = (step_ - n_keys) / n_pages;
    const std::byte* page = values_.at(pages.begin + (step_ - n_keys) % n_pages);
    if (args_.is_latent) return stage_latent<Pages>(reader_, to, page, chunk, args_.value_dim);
    stage_values<Pages>(reader_, to, page, chunk);
  }

  const AttendRowsArgs& args_;
  const AttendBlock& block_;
  PageReader<Pages> reader_;
  SeenPages keys_;
  SeenPages values_;
  Shared<uint32_t> words_;
  int32_t tile_;
  int32_t step_ = 0;
  int32_t n_asked_ = 0;
  int32_t n_read_ = 0;
};

// A warp's queries over one split. The sums of their weights are the lanes': lane / 4 is the query, and lane % 4 * 4 +
// j the token modulo 16. Weights are in shared memory, [pair of tokens][query][2], and outputs,
// [query][chunk][lane][4].
struct WarpState {
  float max[kWarpQueries] = {};
  float lanes[4] = {};
  Shared<int32_t> places;
  Shared<float> weights;
  Shared<float> outputs;
  uint32_t weights_at;
  uint32_t outputs_at;
  int32_t n_chunks;

  CANDOR_DEVICE uint32_t output_at(int r, int32_t chunk) const {
    return outputs_at + (r * n_chunks + chunk) * kChunkDims + 4 * lane();
  }

  CANDOR_DEVICE void clear() {
    CANDOR_UNROLL
    for (int r = 0; r < kWarpQueries; ++r) {
      max[r] = kLowestScore;
      for (int32_t chunk = 0; chunk < n_chunks; ++chunk) store16(outputs, output_at(r, chunk), Uint4{0, 0, 0, 0});
    }
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) lanes[j] = 0.0f;
  }

  // To a greater maximum.
  CANDOR_DEVICE void rescale(int r, float new_max) {
    const float part = exp_of(sub_rn(max[r], new_max));
    max[r] = new_max;
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) {
      if (lane() / 4 == static_cast<uint32_t>(r)) lanes[j] = mul_rn(lanes[j], part);
    }
    for (int32_t chunk = 0; chunk < n_chunks; ++chunk) {
      for (uint32_t j = 0; j < 4; ++j) {
        const float output = outputs[output_at(r, chunk) + j];
        outputs[output_at(r, chunk) + j] = mul_rn(output, part);
      }
    }
  }

  CANDOR_DEVICE void load_outputs(int32_t chunk, float (&x)[kWarpQueries][4]) const {
    CANDOR_UNROLL
    for (int r = 0; r < kWarpQueries; ++r) {
      const Uint4 w = load16(outputs.pointer(output_at(r, chunk), 4));
      x[r][0] = float_of(w.x), x[r][1] = float_of(w.y), x[r][2] = float_of(w.z), x[r][3] = float_of(w.w);
    }
  }
  CANDOR_DEVICE void store_outputs(int32_t chunk, const float (&x)[kWarpQueries][4]) const {
    CANDOR_UNROLL
    for (int r = 0; r < kWarpQueries; ++r) {
      store16(outputs, output_at(r, chunk),
              Uint4{bits_of(x[r][0]), bits_of(x[r][1]), bits_of(x[r][2]), bits_of(x[r][3])});
    }
  }

  // The sum of the lane's query.
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

// Step 4 for query r, whose scores of tokens t0 + 4 * lane + j become weights.
template <class Rows>
CANDOR_DEVICE void weigh_query(const AttendRowsArgs& a, WarpState& s, int r, int32_t t0, float (&scores)[4]) {
  const Query query = load_place(s.places, warp() * kWarpQueries + r);
  const int32_t first = t0 + 4 * lane();
  if (adjusts_scores(a)) {
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) scores[j] = adjust_score(a, query, first + j, scores[j]);
  }
  float greatest = kLowestScore;
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) {
    if (query.seen.holds(first + j)) greatest = elementary::max(scores[j], greatest);
  }
  const float new_max = elementary::max(warp_max(greatest), s.max[r]);
  if (new_max != s.max[r]) s.rescale(r, new_max);
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) {
    scores[j] = query.seen.holds(first + j) ? weight_of<Rows>(scores[j], new_max) : 0.0f;
  }
}

// The weights of all queries go to shared memory, and are added to their lanes.
template <class Rows>
CANDOR_DEVICE void weigh_tile(const AttendRowsArgs& a, WarpState& s, int32_t t0, float (&scores)[kWarpQueries][4]) {
  CANDOR_UNROLL
  for (int r = 0; r < kWarpQueries; ++r) weigh_query<Rows>(a, s, r, t0, scores[r]);
  CANDOR_UNROLL
  for (int r = 0; r < kWarpQueries; r += 2) {
    CANDOR_UNROLL
    for (int j = 0; j < 4; j += 2) {
      const uint32_t pair = 2 * lane() + j / 2;
      store16(s.weights, s.weights_at + pair * kWeightStride + 2 * r,
              Uint4{bits_of(scores[r][j]), bits_of(scores[r][j + 1]), bits_of(scores[r + 1][j]),
                    bits_of(scores[r + 1][j + 1])});
    }
  }
  sync_warp();
  for (uint32_t of16 = 0; of16 < kKeyTile / 16; ++of16) {
    const uint32_t at = s.weights_at + (of16 * 8 + lane() % 4 * 2) * kWeightStride + lane() / 4 * 2;
    CANDOR_UNROLL
    for (uint32_t j = 0; j < 4; ++j) s.lanes[j] = add_rn(s.lanes[j], s.weights[at + j / 2 * kWeightStride + j % 2]);
  }
}

// Bit 4 * r + i: query r sees some of page first + i.
CANDOR_DEVICE uint32_t seen_pages(const AttendRowsArgs& a, const AttendBlock& b, int32_t first) {
  const Query query = query_of(a, b, warp() * kWarpQueries + lane() / 4);
  return ballot(!query.seen.is_empty() && covered(query.seen, kPageTokens).holds(first + lane() % 4));
}

// Scores of the warp's queries: of tokens 4 * lane + j.
template <class Pages>
CANDOR_DEVICE void score_tile(const AttendBlocksArgs& args, bool is_idle, StageRing<Pages>& ring,
                              float (&scores)[kWarpQueries][4]) {
  using Rows = typename Pages::Rows;
  const int32_t dp = padded_dim(args.rows.head_dim);
  const uint32_t stride = 2 * kWarpQueries * n_warps();
  PairSums<kWarpQueries> sums;
  for (int32_t d = 0; d < dp; d += kStageDims) {
    const Stage stage = ring.next();
    if (is_idle) continue;
    const PairWeights w{shared<float>(args.queries_at), d / 2 * stride + warp() * 2 * kWarpQueries, stride};
    multiply_rows<Rows>(stage, lane() / 4, w, (dp - d < kStageDims ? dp - d : kStageDims) / 2, sums);
    sums.add_to(scores, ~0u);
  }
}

template <class Pages>
CANDOR_DEVICE void add_values(const AttendRowsArgs& a, const AttendBlock& b, int32_t tile, WarpState& s,
                              StageRing<Pages>& ring) {
  using Rows = typename Pages::Rows;
  const uint32_t seen = seen_pages(a, b, tile * kTilePages);
  const TokenRange pages = b.pages_of(tile, 1);
  PairSums<kWarpQueries> sums;
  for (int32_t chunk = 0; chunk < s.n_chunks; ++chunk) {
    float outputs[kWarpQueries][4];
    s.load_outputs(chunk, outputs);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const Stage stage = ring.next();
      const int32_t of_tile = page - tile * kTilePages;
      const PairWeights w{s.weights, s.weights_at + of_tile * (kPageTokens / 2) * kWeightStride, kWeightStride};
      multiply_values<Rows>(a, stage, chunk, w, sums);
      sums.add_to(outputs, seen >> of_tile);
    }
    s.store_outputs(chunk, outputs);
  }
}

// Reads the stages of a tile's values and nothing else.
template <class Pages>
CANDOR_DEVICE void skip_values(const AttendBlock& b, int32_t tile, int32_t n_chunks, StageRing<Pages>& ring) {
  const TokenRange pages = b.pages_of(tile, 1);
  for (int32_t i = n_chunks * (pages.end - pages.begin); i > 0; --i) ring.next();
}

template <class Pages>
CANDOR_DEVICE void attend_tiles(const AttendBlocksArgs& args) {
  using Rows = typename Pages::Rows;
  const AttendRowsArgs& a = args.rows;
  const AttendBlock b = block_of(args);
  if (b.tiles.is_empty()) return;
  const int32_t n_queries = kWarpQueries * n_warps();
  const uint32_t first = warp() * kWarpQueries;
  const int32_t n_chunks = value_chunks(a.value_dim);
  const bool is_idle = static_cast<int32_t>(first) >= b.n_queries();
  WarpState s{.places = shared<int32_t>(args.places_at),
              .weights = shared<float>(args.weights_at),
              .outputs = shared<float>(args.outputs_at),
              .weights_at = warp() * kWarpWeights,
              .outputs_at = first * n_chunks * kChunkDims,
              .n_chunks = n_chunks};
  StageRing<Pages> ring(args, b);
  load_queries<Rows>(a, b, shared<float>(args.queries_at), n_queries);
  store_places(a, b, s.places, n_queries);
  Total totals[kWarpQueries];
  for (int32_t tile = b.tiles.begin; tile < b.tiles.end; ++tile) {
    if (begins_split(b, tile)) s.clear();
    float scores[kWarpQueries][4] = {};
    score_tile<Pages>(args, is_idle, ring, scores);
    if (is_idle) {
      skip_values(b, tile, n_chunks, ring);
      continue;
    }
    weigh_tile<Rows>(a, s, tile * kKeyTile, scores);
    add_values<Pages>(a, b, tile, s, ring);
    if (!ends_split(b, tile)) continue;
    const float sum = s.sum();
    CANDOR_UNROLL
    for (int r = 0; r < kWarpQueries; ++r) {
      const SplitEnd end{static_cast<int32_t>(first) + r,
                         tile * kKeyTile / kSplitTokens,
                         {s.max[r], shuffle(sum, 4 * r)},
                         s.outputs,
                         s.outputs_at + r * n_chunks * kChunkDims};
      end_split<Rows>(args, b, end, totals[r]);
    }
  }
  wait_async<0>();
}

}  // namespace attention

CANDOR_KERNEL(attend_tiles_bf16, AttendBlocksArgs) {
  attention::attend_tiles<attention::Bf16Pages>(args);
}
CANDOR_KERNEL(attend_tiles_f32, AttendBlocksArgs) {
  attention::attend_tiles<attention::F32Pages>(args);
}
CANDOR_KERNEL(attend_tiles_q8, AttendBlocksArgs) {
  attention::attend_tiles<attention::Q8Pages>(args);
}

}  // namespace candor::backend::cuda
