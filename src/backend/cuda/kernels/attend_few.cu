// Attention of few queries, at most one for each warp, which all warps compute together: a group of key tiles at a
// time, whose keys and then values come as a whole into shared memory, the next ones while these are multiplied. Warps
// share out the keys of each tile and 32 dims, the weights of each tile and query, and the values of each page and 128
// dims; at the end of a group each adds what its own query has.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_codes.h"
#include "backend/cuda/kernels/attend_encode.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/attend_sums.h"
#include "backend/cuda/kernels/attend_words.h"
#include "backend/cuda/kernels/elementary.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda {
namespace attention {

// A block's numbers, and its places in shared memory. n: queries.
template <class Pages, int n>
struct FewBlock {
  using Rows = typename Pages::Rows;
  static constexpr auto kStride = static_cast<uint32_t>(weight_stride(n));
  static constexpr auto kWords = static_cast<uint32_t>(weight_words(n));

  const AttendBlocksArgs& args;
  AttendBlock block;
  SeenPages keys;
  SeenPages values;
  int32_t n_tiles;       // of a group
  int32_t n_key_stages;  // of a tile
  int32_t n_chunks;
  int32_t n_blocks;  // of values' dims that share scales

  CANDOR_DEVICE FewBlock(const AttendBlocksArgs& blocks, const AttendBlock& own)
      : args(blocks),
        block(own),
        keys(pages_at(blocks.rows, own, blocks.rows.pages.k_offset)),
        values(pages_at(blocks.rows, own, blocks.rows.pages.v_offset)),
        n_tiles(blocks.group_tiles),
        n_key_stages(key_stages(blocks.rows.head_dim)),
        n_chunks(value_chunks(blocks.rows.value_dim)),
        n_blocks(dim_blocks(padded_dim(blocks.rows.head_dim))) {}

  CANDOR_DEVICE int32_t head_dim() const { return args.rows.head_dim; }

  // Stage i of a group's keys, and the stage of a page and chunk of its values.
  CANDOR_DEVICE Stage key_stage(int32_t i) const {
    return {shared<uint32_t>(static_cast<size_t>(args.keys_at)), static_cast<uint32_t>(i * staged_words<Pages>())};
  }
  CANDOR_DEVICE Stage value_stage(int32_t i) const {
    return {shared<uint32_t>(static_cast<size_t>(args.values_at)),
            static_cast<uint32_t>(i * staged_value_words<Pages>(head_dim()))};
  }
  // [n][kKeyTile] of a stage of keys, or [n][lane][4] of a stage of values, which come when those are done with.
  CANDOR_DEVICE Shared<float> sums() const { return shared<float>(static_cast<size_t>(args.sums_at)); }
  CANDOR_DEVICE uint32_t sums_at(int32_t i) const { return static_cast<uint32_t>(i * n * kKeyTile); }
  // [pair of tokens][n][2], of a group's tiles.
  CANDOR_DEVICE Shared<float> weights() const { return shared<float>(static_cast<size_t>(args.weights_at)); }
  // Of codes: the weights in 16 bits of a group's tile and a block of dims, the queries, and the scales of the tokens
  // of a stage of keys.
  CANDOR_DEVICE Shared<uint32_t> words() const { return shared<uint32_t>(static_cast<size_t>(args.words_at)); }
  CANDOR_DEVICE uint32_t words_at(int32_t tile, int32_t of_dims) const {
    return static_cast<uint32_t>(tile * n_blocks + of_dims) * kWords;
  }
  CANDOR_DEVICE Shared<uint32_t> query_words() const { return shared<uint32_t>(static_cast<size_t>(args.queries_at)); }
  CANDOR_DEVICE float query_scale(int32_t key_stage, int32_t i) const {
    return float_of(query_words()[static_cast<size_t>((padded_dim(head_dim()) / 2 + key_stage) * n + i)]);
  }
  CANDOR_DEVICE Shared<float> token_scales() const { return shared<float>(static_cast<size_t>(args.scales_at)); }

  // [n][chunk][lane][4].
  CANDOR_DEVICE Shared<float> outputs() const { return shared<float>(static_cast<size_t>(args.outputs_at)); }
  CANDOR_DEVICE uint32_t outputs_at() const { return warp() * static_cast<uint32_t>(n_chunks * kChunkDims); }
  CANDOR_DEVICE uint32_t own_outputs(int32_t chunk) const {
    return outputs_at() + static_cast<uint32_t>(chunk * kChunkDims) + 4 * lane();
  }

  // Greatest scores: of each query before the group, then of each query and tile of it.
  CANDOR_DEVICE Shared<float> maxima() const {
    return shared<float>(static_cast<size_t>(args.places_at) + 4 * kPlaceWords * n);
  }
  CANDOR_DEVICE uint32_t maximum_at(int32_t query) const { return static_cast<uint32_t>(query); }
  CANDOR_DEVICE uint32_t maximum_at(int32_t query, int32_t tile) const {
    return static_cast<uint32_t>(n + query * kMostGroupTiles + tile);
  }
  CANDOR_DEVICE Query query(int32_t i) const {
    return load_place(shared<int32_t>(static_cast<size_t>(args.places_at)), i);
  }

  // Of the tiles from `first` on, by all threads; nothing behind the block's last.
  CANDOR_DEVICE void ask_keys(int32_t first) const {
    for (int32_t tile = 0; tile < n_tiles && first + tile < block.tiles.end; ++tile) {
      const KeyStages to{key_stage(tile * n_key_stages), 0, n_key_stages};
      stage_keys<Pages>(head_dim(), to, keys, (first + tile) * kTilePages);
    }
    commit_async();
  }
  CANDOR_DEVICE void ask_values(int32_t first) const {
    const TokenRange pages = block.pages_of(first, n_tiles);
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      for (int32_t chunk = 0; chunk < n_chunks; ++chunk) {
        const Stage to = value_stage((page - first * kTilePages) * n_chunks + chunk);
        stage_values<Pages>(head_dim(), to, values, {page, 1, chunk});
      }
    }
    commit_async();
  }
  // Of the pages that any query sees.
  CANDOR_DEVICE TokenRange value_stages(int32_t first) const {
    const TokenRange pages = block.pages_of(first, n_tiles);
    const int32_t before = first * kTilePages;
    return {(pages.begin - before) * n_chunks, (pages.end - before) * n_chunks};
  }
};

// A warp's query over one split. Lane i has the sum of the tokens that are i % 16 modulo 16, and of the group's tile i
// the part to which it lowers what came before.
struct FewQuery {
  float max = kLowestScore;
  float sum = 0.0f;
  float part = 1.0f;
};

template <class Pages, int n>
CANDOR_DEVICE void score_group(const FewBlock<Pages, n>& f, int32_t first) {
  const int32_t dp = padded_dim(f.head_dim());
  for (auto i = static_cast<int32_t>(warp()); i < f.n_tiles * f.n_key_stages; i += static_cast<int32_t>(n_warps())) {
    if (!f.block.tiles.holds(first + i / f.n_key_stages)) continue;
    const int32_t d = i % f.n_key_stages * kStageDims;
    const int32_t n_dims = dp - d < kStageDims ? dp - d : kStageDims;
    const auto stride = static_cast<uint32_t>(query_stride(n));
    const PairWeights w{shared<float>(static_cast<size_t>(f.args.queries_at)), static_cast<uint32_t>(d / 2) * stride,
                        stride};
    PairSums<n> sums;
    multiply_rows<typename Pages::Rows, true>(f.key_stage(i), lane() / 4, w, static_cast<uint32_t>(n_dims / 2), sums);
    sums.store(f.sums(), f.sums_at(i) + 4 * lane());
  }
}
template <int n>
CANDOR_DEVICE void score_group(const FewBlock<Q8Pages, n>& f, int32_t first) {
  const int32_t dp = padded_dim(f.head_dim());
  for (auto i = static_cast<int32_t>(warp()); i < f.n_tiles * f.n_key_stages; i += static_cast<int32_t>(n_warps())) {
    if (!f.block.tiles.holds(first + i / f.n_key_stages)) continue;
    const int32_t d = i % f.n_key_stages * kStageDims;
    const int32_t n_dims = dp - d < kStageDims ? dp - d : kStageDims;
    const WordPlace w{f.query_words(), static_cast<uint32_t>(d / 2 * n), n};
    CodeSums<n> sums;
    sums.clear();
    multiply_codes<n>(CodeReader(f.key_stage(i), lane() / 4), w, static_cast<uint32_t>(n_dims / 2), sums);
    sums.store(f.sums(), f.sums_at(i) + 4 * lane());
    float scales[4];
    load_key_scales(f.key_stage(i), lane() / 4, scales);
    store4(f.token_scales(), static_cast<uint32_t>(i * kKeyTile) + 4 * lane(), scales);
  }
}

// A query and a tile of the group: its scores become weights where both see one another.
template <class Pages, int n>
struct FewTask {
  const FewBlock<Pages, n>& f;
  int32_t i;  // query
  int32_t tile;
  int32_t first;  // of the group
  Query query;

  CANDOR_DEVICE FewTask(const FewBlock<Pages, n>& block, int32_t number, int32_t group)
      : f(block), i(number % n), tile(number / n), first(group), query(block.query(i)) {}

  CANDOR_DEVICE bool is_seen() const {
    return f.block.tiles.holds(first + tile) && covered(query.seen, kKeyTile).holds(first + tile);
  }
  // Of token 4 * lane + j.
  CANDOR_DEVICE int32_t token(int32_t j) const {
    return (first + tile) * kKeyTile + static_cast<int32_t>(4 * lane()) + j;
  }
  CANDOR_DEVICE uint32_t weight_at(int32_t j) const {
    const uint32_t pair = static_cast<uint32_t>(tile * (kKeyTile / 2)) + 2 * lane() + static_cast<uint32_t>(j / 2);
    return pair * f.kStride + static_cast<uint32_t>(2 * i + j % 2);
  }

  // A stage of keys to the scores.
  CANDOR_DEVICE void add_stage(int32_t stage, float (&scores)[4]) const {
    const uint32_t at = f.sums_at(stage) + static_cast<uint32_t>(i * kKeyTile) + 4 * lane();
    float x[4];
    if constexpr (kIsQ8<Pages>) {
      const float scale = f.query_scale(stage - tile * f.n_key_stages, i);
      int32_t sums[4];
      load_sums(f.sums(), at, sums);
      load4(f.token_scales(), static_cast<uint32_t>(stage * kKeyTile) + 4 * lane(), x);
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) scores[j] = fma_rn(to_float_rn(sums[j]), mul_rn(x[j], scale), scores[j]);
    } else {
      load4(f.sums(), at, x);
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) scores[j] = add_rn(scores[j], x[j]);
    }
  }

  CANDOR_DEVICE void store_scores() const {
    const AttendRowsArgs& a = f.args.rows;
    float scores[4] = {};
    for (int32_t stage = tile * f.n_key_stages; stage < (tile + 1) * f.n_key_stages; ++stage) add_stage(stage, scores);
    float greatest = kLowestScore;
    CANDOR_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      if (adjusts_scores(a)) scores[j] = adjust_score(a, query, token(j), scores[j]);
      if (query.seen.holds(token(j))) greatest = elementary::max(scores[j], greatest);
      f.weights()[weight_at(j)] = scores[j];
    }
    greatest = warp_max(greatest);
    if (lane() == 0) f.maxima()[f.maximum_at(i, tile)] = greatest;
  }

  CANDOR_DEVICE void weigh_scores() const {
    float max = f.maxima()[f.maximum_at(i)];
    for (int32_t before = 0; before <= tile; ++before) max = elementary::max(f.maxima()[f.maximum_at(i, before)], max);
    CANDOR_UNROLL
    for (int32_t j = 0; j < 4; ++j) {
      const float score = f.weights()[weight_at(j)];
      f.weights()[weight_at(j)] = query.seen.holds(token(j)) ? weight_of<typename Pages::Rows>(score, max) : 0.0f;
    }
  }
};

template <class Pages, int n>
CANDOR_DEVICE void store_group_scores(const FewBlock<Pages, n>& f, int32_t first) {
  for (int32_t number = warp_number(); number < n * f.n_tiles; number += warp_count()) {
    const FewTask<Pages, n> task(f, number, first);
    if (task.is_seen()) {
      task.store_scores();
    } else if (lane() == 0) {
      f.maxima()[f.maximum_at(task.i, task.tile)] = kLowestScore;
    }
  }
}

template <class Pages, int n>
CANDOR_DEVICE void weigh_group(const FewBlock<Pages, n>& f, int32_t first) {
  for (int32_t number = warp_number(); number < n * f.n_tiles; number += warp_count()) {
    const FewTask<Pages, n> task(f, number, first);
    if (task.is_seen()) task.weigh_scores();
  }
}

// A group's weights become words, which a stage of its values shares out.
template <class Pages, int n>
CANDOR_DEVICE void encode_group(const FewBlock<Pages, n>&, int32_t) {}
template <int n>
CANDOR_DEVICE void encode_group(const FewBlock<Q8Pages, n>& f, int32_t first) {
  const TokenRange pages = f.block.pages_of(first, f.n_tiles);
  for (int32_t number = warp_number(); number < n * f.n_tiles; number += warp_count()) {
    const FewTask<Q8Pages, n> task(f, number, first);
    const int32_t page = task.tile * kTilePages + lane_number() / 8;
    const bool is_staged = pages.holds(first * kTilePages + page);
    float p[4] = {};
    if (task.is_seen()) {
      CANDOR_UNROLL
      for (int32_t j = 0; j < 4; ++j) p[j] = f.weights()[task.weight_at(j)];
    }
    const float largest = normalize_weights(p);
    for (int32_t of_dims = 0; of_dims < f.n_blocks; ++of_dims) {
      float scales[4] = {};
      if (is_staged) {
        const Stage stage = f.value_stage(page * f.n_chunks + of_dims / kChunkBlocks);
        const uint32_t at = stage.at + static_cast<uint32_t>(kCodeScalesAt + of_dims % kChunkBlocks * kRowWords);
        CANDOR_UNROLL
        for (uint32_t j = 0; j < 4; ++j) scales[j] = scale_of(stage.words[at + lane() % 8 * 2 + j / 2], j % 2);
      }
      TokenShares tokens;
      tokens.set(scales, task.query.seen, task.token(0));
      const WeightPlace place{f.words(), f.words_at(task.tile, of_dims), n, static_cast<uint32_t>(task.i)};
      place.store(p, largest, tokens);
    }
  }
  sync_block();
}

template <class Pages, int n>
CANDOR_DEVICE void multiply_group(const FewBlock<Pages, n>& f, int32_t first) {
  const TokenRange stages = f.value_stages(first);
  for (int32_t i = stages.begin + static_cast<int32_t>(warp()); i < stages.end; i += static_cast<int32_t>(n_warps())) {
    const auto pair = static_cast<uint32_t>(i / f.n_chunks * (kPageTokens / 2));
    const PairWeights w{f.weights(), pair * f.kStride, f.kStride};
    const int32_t n_pieces = padded_dim(f.head_dim()) / 16 - i % f.n_chunks * kPieces;
    const uint32_t piece = static_cast<int32_t>(lane() / 4) < n_pieces ? lane() / 4 : 0;
    PairSums<n> sums;
    multiply_rows<typename Pages::Rows, false>(f.value_stage(i), piece, w, kPageTokens / 2, sums);
    sums.store(f.sums(), f.sums_at(i) + 4 * lane());
  }
}
template <int n>
CANDOR_DEVICE void multiply_group(const FewBlock<Q8Pages, n>& f, int32_t first) {
  const TokenRange stages = f.value_stages(first);
  for (int32_t i = stages.begin + static_cast<int32_t>(warp()); i < stages.end; i += static_cast<int32_t>(n_warps())) {
    const int32_t page = i / f.n_chunks;
    const int32_t chunk = i % f.n_chunks;
    const int32_t n_pieces = padded_dim(f.head_dim()) / 16 - chunk * kPieces;
    const uint32_t piece = static_cast<int32_t>(lane() / 4) < n_pieces ? lane() / 4 : 0;
    const uint32_t at = f.words_at(page / kTilePages, chunk * kChunkBlocks + static_cast<int32_t>(piece / 2));
    const WordPlace w{f.words(), at + static_cast<uint32_t>(page % kTilePages * (kPageTokens / 2) * n), n};
    CodeSums<n> sums;
    sums.clear();
    multiply_codes<n>(CodeReader(f.value_stage(i), piece), w, kPageTokens / 2, sums);
    sums.store(f.sums(), f.sums_at(i) + 4 * lane());
  }
}

// The group's weights to the sum of the warp's query.
template <class Pages, int n>
CANDOR_DEVICE void add_weights(const FewBlock<Pages, n>& f, int32_t first, FewQuery& q) {
  const int32_t own = warp_number();
  for (int32_t tile = 0; tile < f.n_tiles; ++tile) {
    const FewTask<Pages, n> task(f, tile * n + own, first);
    const float new_max = elementary::max(f.maxima()[f.maximum_at(own, tile)], q.max);
    const float part = exp_of(sub_rn(q.max, new_max));
    q.max = new_max;
    if (lane_number() == tile) q.part = part;
    if (!task.is_seen()) continue;
    q.sum = mul_rn(q.sum, part);
    const uint32_t at = static_cast<uint32_t>(tile * (kKeyTile / 2)) * f.kStride + 2 * warp();
    for (uint32_t t = lane() % 16; t < kKeyTile; t += 16) {
      q.sum = add_rn(q.sum, f.weights()[at + t / 2 * f.kStride + t % 2]);
    }
  }
  if (lane() == 0) f.maxima()[f.maximum_at(own)] = q.max;
}

// A tile's sums, of pages of the group, to the lane's outputs of the warp's query.
template <int n>
CANDOR_DEVICE void add_tile_sums(const FewBlock<Q8Pages, n>& f, int32_t tile, int32_t chunk, TokenRange pages,
                                 float (&x)[4]) {
  int32_t total[4] = {};
  for (int32_t i = 0; i < kTilePages; ++i) {
    const int32_t page = tile * kTilePages + i;
    if (!pages.holds(page)) continue;
    int32_t sums[4];
    load_sums(f.sums(), f.sums_at(page * f.n_chunks + chunk) + warp() * kChunkDims + 4 * lane(), sums);
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) total[j] += sums[j];
  }
  const int32_t own = chunk * kChunkBlocks + lane_number() / 8;
  const WeightPlace place{f.words(), f.words_at(tile, own < f.n_blocks ? own : 0), n, warp()};
  add_sums(x, total, place.factor());
}

template <class Pages, int n>
CANDOR_DEVICE void add_page_sums(const FewBlock<Pages, n>& f, int32_t tile, int32_t chunk, TokenRange pages,
                                 float (&x)[4]) {
  CANDOR_UNROLL
  for (int32_t i = 0; i < kTilePages; ++i) {
    const int32_t page = tile * kTilePages + i;
    if (!pages.holds(page)) continue;
    float y[4];
    load4(f.sums(), f.sums_at(page * f.n_chunks + chunk) + warp() * kChunkDims + 4 * lane(), y);
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) x[j] = add_rn(x[j], y[j]);
  }
}

// To the outputs of the warp's query.
template <class Pages, int n>
CANDOR_DEVICE void add_values(const FewBlock<Pages, n>& f, int32_t first, const FewQuery& q) {
  const int32_t before = first * kTilePages;
  const TokenRange wanted = f.block.pages_of(first, f.n_tiles);
  const TokenRange seen = covered(f.query(warp_number()).seen, kPageTokens);
  const int32_t begin = (wanted.begin > seen.begin ? wanted.begin : seen.begin) - before;
  const int32_t end = (wanted.end < seen.end ? wanted.end : seen.end) - before;
  for (int32_t chunk = 0; chunk < f.n_chunks; ++chunk) {
    float x[4];
    load4(f.outputs(), f.own_outputs(chunk), x);
    for (int32_t tile = 0; tile < f.n_tiles; ++tile) {
      const float part = shuffle(q.part, static_cast<uint32_t>(tile));
      CANDOR_UNROLL
      for (int j = 0; j < 4; ++j) x[j] = mul_rn(x[j], part);
      if constexpr (kIsQ8<Pages>) {
        add_tile_sums(f, tile, chunk, {begin, end}, x);
      } else {
        add_page_sums(f, tile, chunk, {begin, end}, x);
      }
    }
    store4(f.outputs(), f.own_outputs(chunk), x);
  }
}

template <class Pages, int n>
CANDOR_DEVICE void begin_query(const FewBlock<Pages, n>& f, FewQuery& q) {
  q.max = kLowestScore;
  q.sum = 0.0f;
  if (lane() == 0) f.maxima()[f.maximum_at(warp_number())] = q.max;
  for (int32_t chunk = 0; chunk < f.n_chunks; ++chunk) store16(f.outputs(), f.own_outputs(chunk), Uint4{0, 0, 0, 0});
}

template <class Pages, int n>
CANDOR_DEVICE void end_query(const FewBlock<Pages, n>& f, int32_t last_tile, const FewQuery& q, Total& total) {
  float sum = q.sum;
  CANDOR_UNROLL
  for (uint32_t mask = 8; mask > 0; mask /= 2) sum = add_rn(sum, shuffle_xor(sum, mask));
  const SplitEnd end{
      static_cast<int32_t>(warp()), last_tile * kKeyTile / kSplitTokens, {q.max, sum}, f.outputs(), f.outputs_at()};
  end_split<typename Pages::Rows>(f.args, f.block, end, total);
}

// Groups begin at multiples of their tiles, so that none lies in two splits. Before the first one is another that only
// asks for what comes.
template <class Pages, int n>
CANDOR_DEVICE void attend_few(const AttendBlocksArgs& args) {
  const AttendBlock block = block_of(args);
  if (block.tiles.is_empty()) return;
  const FewBlock<Pages, n> f(args, block);
  if constexpr (kIsQ8<Pages>) {
    encode_queries(args.rows, block, f.query_words(), n);
  } else {
    load_queries<typename Pages::Rows>(args.rows, block, shared<float>(static_cast<size_t>(args.queries_at)), n);
  }
  store_places(args.rows, block, shared<int32_t>(static_cast<size_t>(args.places_at)), n);
  const bool has_query = warp_number() < block.n_queries();
  FewQuery q;
  Total total;
  const int32_t first = block.tiles.begin / f.n_tiles * f.n_tiles;
  for (int32_t group = first - f.n_tiles; group < block.tiles.end; group += f.n_tiles) {
    const bool is_group = group >= first;
    if (is_group) {
      if (has_query && (group == first || begins_split(block, group))) begin_query(f, q);
      wait_async<1>();
      sync_block();
      score_group(f, group);
      sync_block();
    }
    f.ask_keys(group + f.n_tiles);
    if (is_group) {
      store_group_scores(f, group);
      sync_block();
      weigh_group(f, group);
      wait_async<1>();
      sync_block();
      encode_group(f, group);
      multiply_group(f, group);
      sync_block();
    }
    f.ask_values(group + f.n_tiles);
    if (!is_group || !has_query) continue;
    add_weights(f, group, q);
    add_values(f, group, q);
    const int32_t end = group + f.n_tiles < block.tiles.end ? group + f.n_tiles : block.tiles.end;
    if (ends_split(block, end - 1)) end_query(f, end - 1, q, total);
  }
  wait_async<0>();
}

}  // namespace attention

constexpr int32_t kFewThreads = 32 * attention::kMostWarps;

CANDOR_BOUNDED_KERNEL(attend_few2_bf16, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Bf16Pages, 2>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few2_f32, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::F32Pages, 2>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few2_q8, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Q8Pages, 2>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few4_bf16, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Bf16Pages, 4>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few4_f32, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::F32Pages, 4>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few4_q8, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Q8Pages, 4>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few8_bf16, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Bf16Pages, 8>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few8_f32, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::F32Pages, 8>(args);
}
CANDOR_BOUNDED_KERNEL(attend_few8_q8, AttendBlocksArgs, kFewThreads, 2) {
  attention::attend_few<attention::Q8Pages, 8>(args);
}

}  // namespace candor::backend::cuda
