// Attention of few queries, at most one for each warp, which all warps compute together: a group of key tiles at a
// time, whose keys and then values come as a whole into shared memory, the next ones while these are multiplied. A warp
// multiplies the keys of some tiles' 32 dims, weighs the scores of its own query, multiplies the values of some pages'
// 128 dims, and adds them to the outputs of its own query.

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

// A block's numbers, and its places in shared memory. n: queries.
template <class Pages, int n>
struct FewBlock {
  using Rows = typename Pages::Rows;
  static constexpr uint32_t kStride = weight_stride(n);

  const AttendBlocksArgs& args;
  AttendBlock block;
  PageReader<Pages> reader;
  SeenPages keys;
  SeenPages values;
  int32_t n_key_stages;  // of a tile
  int32_t n_chunks;
  uint32_t value_words;  // of a stage of values

  CANDOR_DEVICE static FewBlock make(const AttendBlocksArgs& args, const AttendBlock& block) {
    const AttendRowsArgs& a = args.rows;
    return {args,
            block,
            reader_of<Pages>(a.head_dim),
            pages_at(a, block, a.pages.k_offset),
            pages_at(a, block, a.pages.v_offset),
            key_stages(a.head_dim),
            value_chunks(a.value_dim),
            static_cast<uint32_t>(value_stage_words(a.head_dim, Rows::kPer))};
  }

  CANDOR_DEVICE Stage key_stage(int32_t tile, int32_t i) const {
    return {shared<uint32_t>(args.keys_at), static_cast<uint32_t>(tile * n_key_stages + i) * stage_words<Rows>()};
  }
  CANDOR_DEVICE Stage value_stage(int32_t page, int32_t chunk) const {
    return {shared<uint32_t>(args.values_at), static_cast<uint32_t>(page * n_chunks + chunk) * value_words};
  }
  // [n][kKeyTile] of a stage of keys, or [n][lane][4] of a stage of values, which come when those are done with.
  CANDOR_DEVICE Shared<float> sums() const { return shared<float>(args.sums_at); }
  // [pair of tokens][n][2], of a group's tiles.
  CANDOR_DEVICE Shared<float> weights() const { return shared<float>(args.weights_at); }
  // [n][chunk][lane][4].
  CANDOR_DEVICE Shared<float> outputs() const { return shared<float>(args.outputs_at); }
  CANDOR_DEVICE uint32_t output_at(int32_t chunk) const {
    return (warp() * n_chunks + chunk) * kChunkDims + 4 * lane();
  }

  // Of the tiles from `first` on, by all threads; nothing behind the block's last.
  CANDOR_DEVICE void ask_keys(int32_t first) const {
    for (int32_t i = 0; i < args.group_tiles && first < block.tiles.end; ++i) {
      for (int32_t stage = 0; stage < n_key_stages; ++stage) {
        stage_keys<Pages>(reader, key_stage(i, stage), keys, (first + i) * kTilePages, stage * kStageDims);
      }
    }
    commit_async();
  }
  CANDOR_DEVICE void ask_values(int32_t first) const {
    const TokenRange pages = block.pages_of(first, args.group_tiles);
    for (int32_t page = pages.begin; page < pages.end && first < block.tiles.end; ++page) {
      for (int32_t chunk = 0; chunk < n_chunks; ++chunk) {
        stage_values<Pages>(reader, value_stage(page - first * kTilePages, chunk), values.at(page), chunk);
      }
    }
    commit_async();
  }
};

// A warp's query over one split.
struct FewQuery {
  Query query;
  float max;
  float sum;                     // of the tokens that are lane % 16 modulo 16
  float parts[kMostGroupTiles];  // by which each tile of the group lowers what came before
};

template <class Pages, int n>
CANDOR_DEVICE void score_group(const FewBlock<Pages, n>& f, int32_t first) {
  using Rows = typename Pages::Rows;
  const int32_t dp = padded_dim(f.args.rows.head_dim);
  for (int32_t i = warp(); i < f.args.group_tiles * f.n_key_stages; i += n_warps()) {
    const int32_t tile = i / f.n_key_stages;
    const int32_t d = i % f.n_key_stages * kStageDims;
    if (!f.block.tiles.holds(first + tile)) continue;
    PairSums<n> sums;
    const PairWeights w{shared<float>(f.args.queries_at), static_cast<uint32_t>(d * n), 2 * n};
    multiply_rows<Rows>(f.key_stage(tile, i % f.n_key_stages), lane() / 4, w,
                        (dp - d < kStageDims ? dp - d : kStageDims) / 2, sums);
    sums.store(f.sums(), i * n * kKeyTile + 4 * lane());
  }
}

// Scores of the warp's query.
template <class Pages, int n>
CANDOR_DEVICE void add_scores(const FewBlock<Pages, n>& f, int32_t tile, float (&scores)[4]) {
  for (int32_t i = 0; i < f.n_key_stages; ++i) {
    const uint32_t at = ((tile * f.n_key_stages + i) * n + warp()) * kKeyTile + 4 * lane();
    const Uint4 w = load16(f.sums().pointer(at, 4));
    scores[0] = add_rn(scores[0], float_of(w.x));
    scores[1] = add_rn(scores[1], float_of(w.y));
    scores[2] = add_rn(scores[2], float_of(w.z));
    scores[3] = add_rn(scores[3], float_of(w.w));
  }
}

// Step 4 of a tile for the warp's query.
template <class Pages, int n>
CANDOR_DEVICE float weigh_few(const FewBlock<Pages, n>& f, int32_t first, int32_t tile, FewQuery& q) {
  using Rows = typename Pages::Rows;
  const AttendRowsArgs& a = f.args.rows;
  float scores[4] = {};
  add_scores(f, tile, scores);
  const int32_t token = (first + tile) * kKeyTile + 4 * lane();
  float greatest = kLowestScore;
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) {
    if (adjusts_scores(a)) scores[j] = adjust_score(a, q.query, token + j, scores[j]);
    if (q.query.seen.holds(token + j)) greatest = elementary::max(scores[j], greatest);
  }
  const float new_max = elementary::max(warp_max(greatest), q.max);
  const float part = exp_of(sub_rn(q.max, new_max));
  q.max = new_max;
  const Shared<float> weights = f.weights();
  const uint32_t tile_at = tile * (kKeyTile / 2) * f.kStride + 2 * warp();
  CANDOR_UNROLL
  for (uint32_t j = 0; j < 4; ++j) {
    const float weight = q.query.seen.holds(token + j) ? weight_of<Rows>(scores[j], new_max) : 0.0f;
    weights[tile_at + (2 * lane() + j / 2) * f.kStride + j % 2] = weight;
  }
  sync_warp();
  q.sum = mul_rn(q.sum, part);
  for (uint32_t t = lane() % 16; t < kKeyTile; t += 16) {
    q.sum = add_rn(q.sum, weights[tile_at + t / 2 * f.kStride + t % 2]);
  }
  return part;
}

template <class Pages, int n>
CANDOR_DEVICE void multiply_group(const FewBlock<Pages, n>& f, int32_t first) {
  using Rows = typename Pages::Rows;
  const TokenRange pages = f.block.pages_of(first, f.args.group_tiles);
  const int32_t begin = (pages.begin - first * kTilePages) * f.n_chunks;
  const int32_t end = (pages.end - first * kTilePages) * f.n_chunks;
  for (int32_t i = begin + warp(); i < end; i += n_warps()) {
    const int32_t page = i / f.n_chunks;
    PairSums<n> sums;
    const PairWeights w{f.weights(), page * (kPageTokens / 2) * f.kStride, f.kStride};
    multiply_values<Rows>(f.args.rows, f.value_stage(page, i % f.n_chunks), i % f.n_chunks, w, sums);
    sums.store(f.sums(), i * n * kChunkDims + 4 * lane());
  }
}

// To the outputs of the warp's query.
template <class Pages, int n>
CANDOR_DEVICE void add_group(const FewBlock<Pages, n>& f, int32_t first, const FewQuery& q) {
  const TokenRange pages = f.block.pages_of(first, f.args.group_tiles);
  const TokenRange seen = covered(q.query.seen, kPageTokens);
  const Shared<float> outputs = f.outputs();
  for (int32_t chunk = 0; chunk < f.n_chunks; ++chunk) {
    for (uint32_t j = 0; j < 4; ++j) {
      float output = outputs[f.output_at(chunk) + j];
      CANDOR_UNROLL
      for (int32_t tile = 0; tile < kMostGroupTiles; ++tile) {
        if (tile >= f.args.group_tiles) continue;
        output = mul_rn(output, q.parts[tile]);
        for (int32_t i = tile * kTilePages; i < (tile + 1) * kTilePages; ++i) {
          const int32_t page = first * kTilePages + i;
          if (!pages.holds(page) || !seen.holds(page)) continue;
          output = add_rn(output, f.sums()[((i * f.n_chunks + chunk) * n + warp()) * kChunkDims + 4 * lane() + j]);
        }
      }
      outputs[f.output_at(chunk) + j] = output;
    }
  }
}

template <class Pages, int n>
CANDOR_DEVICE void begin_query(const FewBlock<Pages, n>& f, FewQuery& q) {
  q.max = kLowestScore;
  q.sum = 0.0f;
  for (int32_t chunk = 0; chunk < f.n_chunks; ++chunk) store16(f.outputs(), f.output_at(chunk), Uint4{0, 0, 0, 0});
}

template <class Pages, int n>
CANDOR_DEVICE void end_query(const FewBlock<Pages, n>& f, int32_t last_tile, const FewQuery& q, Total& total) {
  float sum = q.sum;
  CANDOR_UNROLL
  for (uint32_t mask = 8; mask > 0; mask /= 2) sum = add_rn(sum, shuffle_xor(sum, mask));
  const SplitEnd end{static_cast<int32_t>(warp()),
                     last_tile * kKeyTile / kSplitTokens,
                     {q.max, sum},
                     f.outputs(),
                     warp() * f.n_chunks * kChunkDims};
  end_split<typename Pages::Rows>(f.args, f.block, end, total);
}

// Groups begin at multiples of their tiles, so that none lies in two splits.
template <class Pages, int n>
CANDOR_DEVICE void attend_few(const AttendBlocksArgs& args) {
  const AttendBlock block = block_of(args);
  if (block.tiles.is_empty()) return;
  const FewBlock<Pages, n> f = FewBlock<Pages, n>::make(args, block);
  const int32_t n_tiles = args.group_tiles;
  int32_t first = block.tiles.begin / n_tiles * n_tiles;
  f.ask_keys(first);
  f.ask_values(first);
  load_queries<typename Pages::Rows>(args.rows, block, shared<float>(args.queries_at), n);
  const bool has_query = static_cast<int32_t>(warp()) < block.n_queries();
  FewQuery q{.query = query_of(args.rows, block, warp()), .max = 0.0f, .sum = 0.0f, .parts = {}};
  const TokenRange tiles = covered(q.query.seen, kKeyTile);
  Total total;
  for (; first < block.tiles.end; first += n_tiles) {
    if (has_query && (begins_split(block, first) || first < block.tiles.begin)) begin_query(f, q);
    wait_async<1>();
    sync_block();
    score_group(f, first);
    sync_block();
    f.ask_keys(first + n_tiles);
    CANDOR_UNROLL
    for (int32_t tile = 0; tile < kMostGroupTiles; ++tile) {
      const bool is_seen = has_query && tile < n_tiles && block.tiles.holds(first + tile) && tiles.holds(first + tile);
      q.parts[tile] = is_seen ? weigh_few(f, first, tile, q) : 1.0f;
    }
    wait_async<1>();
    sync_block();
    multiply_group(f, first);
    sync_block();
    f.ask_values(first + n_tiles);
    if (!has_query) continue;
    add_group(f, first, q);
    const int32_t last = first + n_tiles < block.tiles.end ? first + n_tiles : block.tiles.end;
    if (ends_split(block, last - 1)) end_query(f, last - 1, q, total);
  }
  wait_async<0>();
}

}  // namespace attention

CANDOR_KERNEL(attend_few4_bf16, AttendBlocksArgs) {
  attention::attend_few<attention::Bf16Pages, 4>(args);
}
CANDOR_KERNEL(attend_few4_f32, AttendBlocksArgs) {
  attention::attend_few<attention::F32Pages, 4>(args);
}
CANDOR_KERNEL(attend_few4_q8, AttendBlocksArgs) {
  attention::attend_few<attention::Q8Pages, 4>(args);
}
CANDOR_KERNEL(attend_few8_bf16, AttendBlocksArgs) {
  attention::attend_few<attention::Bf16Pages, 8>(args);
}
CANDOR_KERNEL(attend_few8_f32, AttendBlocksArgs) {
  attention::attend_few<attention::F32Pages, 8>(args);
}
CANDOR_KERNEL(attend_few8_q8, AttendBlocksArgs) {
  attention::attend_few<attention::Q8Pages, 8>(args);
}

}  // namespace candor::backend::cuda
