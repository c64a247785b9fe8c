#include "backend/cuda/attend_kernels.h"

#include <algorithm>
#include <tuple>

#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/kernel_list.h"
#include "kernels/attend.h"

namespace candor::backend::cuda {
namespace {

using kernels::KvFormat;

constexpr uint32_t kStoreThreads = 128;
constexpr uint32_t kCombineThreads = 128;
constexpr int32_t kMostFewQueries = 8;  // of a block
constexpr int32_t kLeastFewQueries = 2;
constexpr int32_t kFewQueriesOfSlice = 16;    // more are taken together
constexpr int32_t kLeastManyQueries = 16;     // of a block where there are few blocks
constexpr int64_t kSystemSharedBytes = 1024;  // that the card takes of each block's
constexpr size_t kMostPartialBytes = size_t{64} << 20;
constexpr int32_t kPartialAlignment = 4;  // floats

int32_t per_row(const AttendRowsArgs& a) {
  return static_cast<KvFormat>(a.pages.format) == KvFormat::kF32 ? 1 : 2;
}

// Takes pieces of a block's shared memory, one after another.
class SharedRoom {
 public:
  int32_t take(int64_t n_floats) {
    const int64_t at = n_bytes_;
    n_bytes_ += (n_floats * 4 + 15) / 16 * 16;
    return static_cast<int32_t>(at);
  }
  int64_t n_bytes() const { return n_bytes_; }

 private:
  int64_t n_bytes_ = 0;
};

// 4 bits become int8 in a stage.
bool has_codes(const AttendRowsArgs& a) {
  const auto format = static_cast<KvFormat>(a.pages.format);
  return format == KvFormat::kQ8 || format == KvFormat::kQ4;
}

// Words of a stage as it comes: int8 as codes.
int32_t staged_words(const AttendRowsArgs& a) {
  return has_codes(a) ? attention::kCodeStageWords : attention::stage_words(per_row(a));
}
int32_t staged_value_words(const AttendRowsArgs& a) {
  return has_codes(a) ? attention::kCodeStageWords : attention::value_stage_words(a.head_dim, per_row(a));
}

int64_t query_numbers(const AttendRowsArgs& a, int32_t n_queries) {
  if (has_codes(a)) return attention::query_words(a.head_dim, n_queries);
  return int64_t{attention::padded_dim(a.head_dim)} / 2 * attention::query_stride(n_queries);
}

int64_t place_tiles(AttendBlocksArgs& args, int32_t n_queries) {
  const AttendRowsArgs& a = args.rows;
  SharedRoom room;
  args.keys_at = room.take(int64_t{attention::kRingStages} * staged_words(a));
  args.n_queries = n_queries;
  args.weights_at = room.take(int64_t{n_queries} / attention::kWarpQueries * attention::kWarpWeights);
  args.outputs_at = room.take(int64_t{n_queries} * attention::value_chunks(a.value_dim) * attention::kChunkDims);
  args.queries_at = room.take(query_numbers(a, n_queries));
  args.places_at = room.take(int64_t{n_queries} * attention::kPlaceWords);
  if (!has_codes(a)) return room.n_bytes();
  const int32_t n_warps = n_queries / attention::kWarpQueries;
  args.words_at =
      room.take(int64_t{n_warps} * attention::kChunkBlocks * attention::weight_words(attention::kWarpQueries));
  return room.n_bytes();
}

int64_t place_few(AttendBlocksArgs& args, int32_t n_queries, int32_t group_tiles) {
  const AttendRowsArgs& a = args.rows;
  const int32_t key_stages = group_tiles * attention::key_stages(a.head_dim);
  const int32_t value_stages = group_tiles * attention::kTilePages * attention::value_chunks(a.value_dim);
  SharedRoom room;
  args.n_queries = n_queries;
  args.group_tiles = group_tiles;
  args.keys_at = room.take(int64_t{key_stages} * staged_words(a));
  args.values_at = room.take(int64_t{value_stages} * staged_value_words(a));
  args.sums_at = room.take(int64_t{std::max(key_stages, value_stages)} * n_queries * attention::kChunkDims);
  args.weights_at = room.take(int64_t{group_tiles} * attention::kKeyTile / 2 * attention::weight_stride(n_queries));
  args.outputs_at = room.take(int64_t{n_queries} * attention::value_chunks(a.value_dim) * attention::kChunkDims);
  args.queries_at = room.take(query_numbers(a, n_queries));
  args.places_at = room.take(int64_t{n_queries} * (attention::kPlaceWords + 1 + attention::kMostGroupTiles));
  if (!has_codes(a)) return room.n_bytes();
  const int32_t n_blocks = group_tiles * attention::dim_blocks(attention::padded_dim(a.head_dim));
  args.words_at = room.take(int64_t{n_blocks} * attention::weight_words(n_queries));
  args.scales_at = room.take(int64_t{key_stages} * attention::kKeyTile);
  return room.n_bytes();
}

// Tiles at a time, so that each warp has a part of their keys if there is room; 0: not even for one tile.
int32_t few_tiles(int64_t shared_bytes, const AttendRowsArgs& a, int32_t n_queries) {
  if (a.is_latent) return 0;
  AttendBlocksArgs args{.rows = a};
  int32_t n = attention::kMostGroupTiles;
  while (n > 1 && n * attention::key_stages(a.head_dim) > attention::kMostWarps) n /= 2;
  while (n > 0 && place_few(args, n_queries, n) > shared_bytes) n /= 2;
  return n;
}

// Blocks that have room for so many queries. group_tiles: 0 of attend_tiles.
BlockPlan blocks_of(const AttendRowsArgs& a, int32_t n_queries, int32_t group_tiles) {
  const int32_t group_heads = a.n_heads / a.n_kv_heads;
  BlockPlan plan{.n_queries = n_queries, .group_tiles = group_tiles};
  plan.n_parts = attention::up_to(group_heads, n_queries);
  plan.block_heads = attention::up_to(group_heads, plan.n_parts);
  plan.tile_rows = n_queries / plan.block_heads;
  return plan;
}

// Splits that some of the rows see, at most: those of a group see no further than their slice.
int32_t splits_of(const AttendRowsArgs& a, const SeqSlice& seq, const RowTile& tile) {
  const int32_t first = seq.n_past + tile.first_row - seq.first_row;
  kernels::AttendArgs rule;
  rule.window_tokens = a.window_tokens;
  rule.chunk_tokens = a.chunk_tokens;
  return (seq.n_past + seq.n_rows - 1) / attention::kSplitTokens -
         kernels::oldest_seen(rule, first) / attention::kSplitTokens + 1;
}

int32_t partial_floats(const AttendRowsArgs& a) {
  return (a.value_dim + 2 + kPartialAlignment - 1) / kPartialAlignment * kPartialAlignment;
}

// Room for 2, 4 or 8 queries.
int32_t few_room(const BlockPlan& plan) {
  int32_t n = kLeastFewQueries;
  while (n < plan.n_queries) n *= 2;
  return n;
}
int32_t n_threads_of(const BlockPlan& plan) {
  if (plan.group_tiles > 0) return 32 * attention::kMostWarps;
  const int32_t n_warps = attention::up_to(plan.n_queries, attention::kWarpQueries);
  return attention::up_to(32 * n_warps, attention::kUnitThreads) * attention::kUnitThreads;
}
int64_t place_blocks(AttendBlocksArgs& args, const BlockPlan& plan) {
  if (plan.group_tiles > 0) return place_few(args, few_room(plan), plan.group_tiles);
  const int32_t n_warps = attention::up_to(plan.n_queries, attention::kWarpQueries);
  return place_tiles(args, n_warps * attention::kWarpQueries);
}

// The slices of few queries, the others, or all.
enum class Kind : uint8_t { kFew, kMany, kAll };
class SlicesOfKind {
 public:
  SlicesOfKind(const AttendRowsArgs& a, std::span<const SeqSlice> seqs, Kind kind) : a_(a), seqs_(seqs), kind_(kind) {}

  // fn(slice, tile) for each tile.
  template <class Fn>
  void for_tiles(const BlockPlan& plan, Fn&& fn) const {
    for (const SeqSlice& seq : seqs_) {
      if (!is_wanted(seq)) continue;
      for (int32_t i = 0; i < seq.n_rows; i += plan.tile_rows) {
        fn(seq, RowTile{seq.first_row + i, std::min(plan.tile_rows, seq.n_rows - i)});
      }
    }
  }
  // With a block for each split.
  int64_t n_blocks(const BlockPlan& plan) const {
    int64_t n = 0;
    for_tiles(plan, [&](const SeqSlice& seq, const RowTile& tile) { n += splits_of(a_, seq, tile); });
    return n * plan.n_parts * a_.n_kv_heads;
  }

 private:
  bool is_wanted(const SeqSlice& seq) const {
    const bool is_few = seq.n_rows == 1 || seq.n_rows * (a_.n_heads / a_.n_kv_heads) <= kFewQueriesOfSlice;
    return kind_ == Kind::kAll || is_few == (kind_ == Kind::kFew);
  }

  const AttendRowsArgs& a_;
  std::span<const SeqSlice> seqs_;
  Kind kind_;
};

// Blocks of as many queries as there is room for; of fewer while that leaves no processor with two blocks. Where there
// are many blocks, two share a processor, and one computes while the other waits.
BlockPlan plan_few(const DeviceInfo& device, const AttendRowsArgs& a, const SlicesOfKind& slices) {
  const int64_t room = device.max_shared_bytes;
  int32_t n = kMostFewQueries;
  while (n > kLeastFewQueries && few_tiles(room, a, n) == 0) n /= 2;
  if (few_tiles(room, a, n) == 0) return {};
  while (n > kLeastFewQueries && slices.n_blocks(blocks_of(a, n / 2, 1)) <= device.n_processors) n /= 2;
  const int32_t for_two = few_tiles(room / 2 - kSystemSharedBytes, a, n);
  const bool has_two = for_two > 0 && slices.n_blocks(blocks_of(a, n, 1)) >= int64_t{2} * device.n_processors;
  return blocks_of(a, n, has_two ? for_two : few_tiles(room, a, n));
}
BlockPlan plan_many(const DeviceInfo& device, const AttendRowsArgs& a, const SlicesOfKind& slices) {
  AttendBlocksArgs args{.rows = a};
  int32_t n = attention::kMostWarps * attention::kWarpQueries;
  while (n > attention::kWarpQueries && place_tiles(args, n) > device.max_shared_bytes) n -= attention::kWarpQueries;
  while (n > kLeastManyQueries && slices.n_blocks(blocks_of(a, n / 2, 0)) <= device.n_processors) n /= 2;
  return blocks_of(a, n, 0);
}

size_t partial_bytes(const AttendRowsArgs& a, const BlockPlan& blocks) {
  return static_cast<size_t>(a.n_rows) * static_cast<size_t>(a.n_heads) * static_cast<size_t>(blocks.n_splits) *
         static_cast<size_t>(partial_floats(a)) * sizeof(float);
}

void add_tiles(const DeviceInfo& device, const AttendRowsArgs& a, const SlicesOfKind& slices, BlockPlan& blocks,
               AttendPlan& plan) {
  const size_t first = plan.tiles.size();
  int32_t most_rows = 0;
  slices.for_tiles(blocks, [&](const SeqSlice& seq, const RowTile& tile) {
    plan.tiles.push_back(tile);
    blocks.n_splits = std::max(blocks.n_splits, splits_of(a, seq, tile));
    most_rows = std::max(most_rows, tile.n_rows);
  });
  blocks.n_tiles = static_cast<int32_t>(plan.tiles.size() - first);
  blocks.tile_rows = most_rows;
  blocks.n_queries = most_rows * blocks.block_heads;
  AttendBlocksArgs placed{.rows = a};
  if (blocks.n_tiles > 0) blocks.shared_bytes = place_blocks(placed, blocks);
  if (blocks.n_splits == 1 || blocks.n_tiles * blocks.n_parts * a.n_kv_heads >= device.n_processors) return;
  blocks.shares_splits = partial_bytes(a, blocks) <= kMostPartialBytes;
  if (blocks.shares_splits) plan.partial_bytes = std::max(plan.partial_bytes, partial_bytes(a, blocks));
}

// n: 2, 4 or 8 queries.
Kernel<AttendBlocksArgs> few_kernel(const AttendRowsArgs& a, int32_t n) {
  switch (static_cast<KvFormat>(a.pages.format)) {
    case KvFormat::kBf16:
      return n == 2 ? kernel::attend_few2_bf16 : n == 4 ? kernel::attend_few4_bf16 : kernel::attend_few8_bf16;
    case KvFormat::kF32:
      return n == 2 ? kernel::attend_few2_f32 : n == 4 ? kernel::attend_few4_f32 : kernel::attend_few8_f32;
    case KvFormat::kQ8:
    case KvFormat::kQ4:
      break;
  }
  return n == 2 ? kernel::attend_few2_q8 : n == 4 ? kernel::attend_few4_q8 : kernel::attend_few8_q8;
}

Kernel<AttendBlocksArgs> tiles_kernel(const AttendRowsArgs& a) {
  switch (static_cast<KvFormat>(a.pages.format)) {
    case KvFormat::kBf16:
      return kernel::attend_tiles_bf16;
    case KvFormat::kF32:
      return kernel::attend_tiles_f32;
    case KvFormat::kQ8:
    case KvFormat::kQ4:
      break;
  }
  return kernel::attend_tiles_q8;
}

// tiles: of the kernel.
void run_blocks(Launcher& launcher, AttendBlocksArgs args, const BlockPlan& blocks) {
  if (blocks.n_tiles == 0) return;
  args.block_heads = blocks.block_heads;
  args.n_parts = blocks.n_parts;
  args.n_splits = blocks.n_splits;
  const Launch launch{.x = static_cast<uint32_t>(blocks.n_tiles),
                      .y = static_cast<uint32_t>(args.rows.n_kv_heads * blocks.n_parts),
                      .z = blocks.shares_splits ? static_cast<uint32_t>(blocks.n_splits) : 1u,
                      .n_threads = static_cast<uint32_t>(n_threads_of(blocks)),
                      .shared_bytes = static_cast<uint32_t>(place_blocks(args, blocks))};
  launcher.run(blocks.group_tiles > 0 ? few_kernel(args.rows, few_room(blocks)) : tiles_kernel(args.rows), launch,
               args);
  if (!blocks.shares_splits) return;
  const Launch combine{.x = static_cast<uint32_t>(blocks.n_tiles),
                       .y = static_cast<uint32_t>(args.rows.n_heads),
                       .z = static_cast<uint32_t>(blocks.tile_rows),
                       .n_threads = kCombineThreads};
  launcher.run(kernel::attend_combine, combine, args);
}

uint32_t rotation_bytes(int32_t head_dim) {
  return static_cast<uint32_t>(head_dim) * 2 * sizeof(float);
}

void rotate_heads(Launcher& launcher, const AttendRowsArgs& rows, const RotateHeadsArgs& args) {
  const Launch launch{.x = static_cast<uint32_t>(rows.n_rows),
                      .y = static_cast<uint32_t>(rows.n_heads),
                      .n_threads = kStoreThreads,
                      .shared_bytes = rotation_bytes(args.head_dim)};
  launcher.run(kernel::rotate_heads, launch, args);
}

}  // namespace

void store_pages(Launcher& launcher, const StorePagesArgs& args) {
  const Launch launch{.x = static_cast<uint32_t>(args.n_rows),
                      .y = static_cast<uint32_t>(args.n_kv_heads),
                      .z = args.v == nullptr ? 1u : 2u,
                      .n_threads = kStoreThreads,
                      .shared_bytes = args.pages.rotated_dims > 0 ? rotation_bytes(args.head_dim) : 0};
  launcher.run(kernel::store_pages, launch, args);
}

void plan_attention(const DeviceInfo& device, const AttendRowsArgs& args, std::span<const SeqSlice> seqs,
                    AttendPlan& plan) {
  plan.tiles.clear();
  plan.partial_bytes = 0;
  plan.rotated_bytes = 0;
  if (args.pages.rotated_dims > 0) {
    plan.rotated_bytes = static_cast<size_t>(args.n_rows) * static_cast<size_t>(args.n_heads) *
                         static_cast<size_t>(args.head_dim) * sizeof(float);
  }
  const SlicesOfKind few(args, seqs, Kind::kFew);
  plan.few = plan_few(device, args, few);
  const bool takes_few = plan.few.n_queries > 0;
  if (takes_few) add_tiles(device, args, few, plan.few, plan);
  const SlicesOfKind many(args, seqs, takes_few ? Kind::kMany : Kind::kAll);
  plan.many = plan_many(device, args, many);
  add_tiles(device, args, many, plan.many, plan);
}

bool has_same_plan(const AttendRowsArgs& a, const AttendRowsArgs& b) {
  const auto key = [](const AttendRowsArgs& of) {
    return std::tuple(of.n_heads, of.n_kv_heads, of.head_dim, of.value_dim, of.window_tokens, of.chunk_tokens,
                      of.is_latent, of.pages.format);
  };
  return key(a) == key(b);
}

void attend_rows(Launcher& launcher, const AttendRowsArgs& args, const AttendPlan& plan, const AttendRoom& room) {
  AttendBlocksArgs blocks{.rows = args,
                          .tiles = room.tiles,
                          .partials = reinterpret_cast<float*>(room.partials),
                          .partial_floats = partial_floats(args)};
  const int32_t rotated_dims = args.pages.rotated_dims;
  if (rotated_dims > 0) {
    auto* rotated = reinterpret_cast<float*>(room.rotated);
    blocks.rows.q = rotated;
    rotate_heads(launcher, args, {args.q, rotated, args.head_dim, rotated_dims});
  }
  run_blocks(launcher, blocks, plan.few);
  blocks.tiles += plan.few.n_tiles;
  run_blocks(launcher, blocks, plan.many);
  if (rotated_dims > 0) rotate_heads(launcher, args, {args.dst, args.dst, args.value_dim, rotated_dims});
}

}  // namespace candor::backend::cuda
