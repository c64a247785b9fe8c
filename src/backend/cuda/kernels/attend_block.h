#pragma once
// The part of attention that a block of threads computes: rows of one sequence, query heads of one K/V head, and the
// key tiles of one split or of all. Included behind language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_rules.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

struct AttendBlock {
  RowTile rows;
  int32_t kv_head;
  int32_t first_head;
  int32_t n_heads;
  TokenRange seen;   // by any of the rows
  TokenRange tiles;  // of keys, within the block's splits; empty: there is nothing to do

  CANDOR_DEVICE int32_t n_queries() const { return rows.n_rows * n_heads; }
  // Pages of key tiles [first, first + n) that any row sees.
  CANDOR_DEVICE TokenRange pages_of(int32_t first, int32_t n) const {
    const TokenRange all = covered(seen, kPageTokens);
    const int32_t begin = first * kTilePages;
    const int32_t end = (first + n) * kTilePages;
    return {all.begin > begin ? all.begin : begin, all.end < end ? all.end : end};
  }
};

CANDOR_DEVICE AttendBlock block_of(const AttendBlocksArgs& args) {
  const AttendRowsArgs& a = args.rows;
  AttendBlock b{};
  b.rows = args.tiles[n_blocks_x() - 1 - block_x()];  // the last rows of a text see most
  b.kv_head = block_y() / args.n_parts;
  const int32_t group = a.n_heads / a.n_kv_heads;
  const int32_t first = block_y() % args.n_parts * args.block_heads;
  b.first_head = b.kv_head * group + first;
  b.n_heads = group - first < args.block_heads ? group - first : args.block_heads;
  b.seen = {seen_tokens(a, a.rows[b.rows.first_row]).begin,
            seen_tokens(a, a.rows[b.rows.first_row + b.rows.n_rows - 1]).end};
  b.tiles = covered(b.seen, kKeyTile);
  if (n_blocks_z() == 1) return b;
  constexpr int32_t kSplitTiles = kSplitTokens / kKeyTile;
  const int32_t begin = (b.seen.begin / kSplitTokens + static_cast<int32_t>(block_z())) * kSplitTiles;
  if (begin > b.tiles.begin) b.tiles.begin = begin;
  if (begin + kSplitTiles < b.tiles.end) b.tiles.end = begin + kSplitTiles;
  return b;
}

CANDOR_DEVICE bool begins_split(const AttendBlock& b, int32_t tile) {
  return tile == b.tiles.begin || tile % (kSplitTokens / kKeyTile) == 0;
}
CANDOR_DEVICE bool ends_split(const AttendBlock& b, int32_t tile) {
  return tile + 1 == b.tiles.end || (tile + 1) % (kSplitTokens / kKeyTile) == 0;
}

CANDOR_DEVICE int32_t row_of(const AttendBlock& b, int32_t query) {
  return b.rows.first_row + query / b.n_heads;
}
CANDOR_DEVICE Query query_of(const AttendRowsArgs& a, const AttendBlock& b, int32_t i) {
  if (i >= b.n_queries()) return {0, 0, {0, 0}};
  const RowPlace& place = a.rows[row_of(b, i)];
  return {b.first_head + i % b.n_heads, place.position, seen_tokens(a, place)};
}

// What all threads know of the block's n queries: four numbers each in shared memory.
CANDOR_DEVICE void store_places(const AttendRowsArgs& a, const AttendBlock& b, Shared<int32_t> places, int32_t n) {
  for (int32_t i = thread(); i < n; i += n_threads()) {
    const Query query = query_of(a, b, i);
    places[4 * i] = query.head;
    places[4 * i + 1] = query.position;
    places[4 * i + 2] = query.seen.begin;
    places[4 * i + 3] = query.seen.end;
  }
}
CANDOR_DEVICE Query load_place(Shared<int32_t> places, int32_t i) {
  const Uint4 w = load16(places.pointer(4 * i, 4));
  const auto number = [](uint32_t bits) { return static_cast<int32_t>(bits); };
  return {number(w.x), number(w.y), {number(w.z), number(w.w)}};
}

// Keys or values of the block's sequence and head.
CANDOR_DEVICE SeenPages pages_at(const AttendRowsArgs& a, const AttendBlock& b, int64_t offset) {
  const int32_t* blocks = a.pages.block_table + int64_t{a.rows[b.rows.first_row].seq} * a.pages.max_blocks;
  const TokenRange all = covered(b.seen, kPageTokens);
  return {a.pages.base + offset + b.kv_head * a.pages.head_bytes, blocks, a.pages.block_bytes, all.begin, all.end,
          a.pages.format == static_cast<int32_t>(kernels::KvFormat::kQ4)};
}

// By all threads: pairs of dims of n queries, scaled; zeros behind the block's. Those of pair i stand from
// query_stride(n) * i on.
template <class Rows>
CANDOR_DEVICE void load_queries(const AttendRowsArgs& a, const AttendBlock& b, Shared<float> queries, int32_t n) {
  for (auto i = static_cast<int32_t>(warp()); i < n; i += static_cast<int32_t>(n_warps())) {
    const bool is_query = i < b.n_queries();
    const int64_t head = int64_t{row_of(b, i)} * a.n_heads + b.first_head + i % b.n_heads;
    for (auto d = static_cast<int32_t>(2 * lane()); d < padded_dim(a.head_dim); d += 64) {
      CANDOR_UNROLL
      for (int32_t j = 0; j < 2; ++j) {
        const bool is_dim = is_query && d + j < a.head_dim;
        const float q = is_dim ? mul_rn(a.q[head * a.head_dim + d + j], a.scale) : 0.0f;
        queries[static_cast<size_t>(d / 2 * query_stride(n) + 2 * i + j)] = round_operand<Rows>(q);
      }
    }
  }
}

// Dim j of the lane in a chunk of values.
template <class Rows>
CANDOR_DEVICE int32_t value_dim_of(const AttendRowsArgs& a, int32_t chunk, uint32_t j) {
  return chunk * kChunkDims + (a.is_latent ? latent_dim<Rows>(j) : static_cast<int32_t>(4 * lane() + j));
}

// Where a query's result goes: of one split (outputs, then the maximum and the sum), and of all.
CANDOR_DEVICE float* partial_of(const AttendBlocksArgs& args, int64_t row, int32_t head, int32_t split) {
  const int64_t place = (row * args.rows.n_heads + head) * args.n_splits + split % args.n_splits;
  return args.partials + place * args.partial_floats;
}
CANDOR_DEVICE float* output_of(const AttendRowsArgs& a, int64_t row, int32_t head) {
  return a.dst + (row * a.n_heads + head) * a.value_dim;
}

// Query i of the block at the end of a split, and its outputs in shared memory: [chunk][lane][4] from `at`. By a warp.
struct SplitEnd {
  int32_t i;
  int32_t split;
  Total own;
  Shared<float> outputs;
  uint32_t at;

  template <class Fn>
  CANDOR_DEVICE void for_outputs(const AttendRowsArgs& a, Fn&& fn) const {
    for (int32_t chunk = 0; chunk * kChunkDims < a.value_dim; ++chunk) {
      for (uint32_t j = 0; j < 4; ++j)
        fn(chunk, j, static_cast<float>(outputs[at + chunk * kChunkDims + 4 * lane() + j]));
    }
  }
};

// A split's result by itself.
template <class Rows>
CANDOR_DEVICE void write_split(const AttendBlocksArgs& args, const AttendBlock& b, const SplitEnd& end) {
  const AttendRowsArgs& a = args.rows;
  const Query query = query_of(a, b, end.i);
  if (query.seen.is_empty() || !covered(query.seen, kSplitTokens).holds(end.split)) return;
  float* partial = partial_of(args, row_of(b, end.i), query.head, end.split);
  end.for_outputs(a, [&](int32_t chunk, uint32_t j, float output) {
    const int32_t d = value_dim_of<Rows>(a, chunk, j);
    if (d < a.value_dim) partial[d] = output;
  });
  if (lane() == 0) {
    partial[a.value_dim] = end.own.max;
    partial[a.value_dim + 1] = end.own.sum;
  }
}

// Joined with the splits before, whose outputs wait in dst.
template <class Rows>
CANDOR_DEVICE void join_split(const AttendRowsArgs& a, const AttendBlock& b, const SplitEnd& end, Total& total) {
  const Query query = query_of(a, b, end.i);
  const TokenRange splits = covered(query.seen, kSplitTokens);
  if (query.seen.is_empty() || !splits.holds(end.split)) return;
  const Shares shares = add_split(total, end.own.max, end.own.sum);
  const bool is_last = end.split + 1 == splits.end;
  const Finish finish = finish_of(a, query.head, total);
  float* dst = output_of(a, row_of(b, end.i), query.head);
  end.for_outputs(a, [&](int32_t chunk, uint32_t j, float output) {
    const int32_t d = value_dim_of<Rows>(a, chunk, j);
    if (d >= a.value_dim) return;
    const float joined = shares.join(end.split == splits.begin ? 0.0f : dst[d], output);
    dst[d] = is_last ? finish.of(joined) : joined;
  });
}

template <class Rows>
CANDOR_DEVICE void end_split(const AttendBlocksArgs& args, const AttendBlock& b, const SplitEnd& end, Total& total) {
  if (n_blocks_z() == 1) return join_split<Rows>(args.rows, b, end, total);
  write_split<Rows>(args, b, end);
}

}  // namespace candor::backend::cuda::attention
