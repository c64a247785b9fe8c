#include "backend/cuda/attend_kernels.h"

#include <algorithm>

#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/kernel_list.h"
#include "kernels/attend.h"

namespace candor::backend::cuda {
namespace {

using kernels::KvFormat;

constexpr uint32_t kStoreThreads = 128;
constexpr uint32_t kCombineThreads = 128;
constexpr int32_t kFewQueries = 8;          // of a block
constexpr int32_t kFewQueriesOfSlice = 16;  // more are taken together
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

BlockPlan blocks_of(int32_t n_queries, int32_t group_heads) {
  BlockPlan plan{.n_queries = n_queries};
  if (n_queries == 0) return plan;
  plan.n_parts = attention::up_to(group_heads, n_queries);
  plan.block_heads = attention::up_to(group_heads, plan.n_parts);
  plan.tile_rows = n_queries / plan.block_heads;
  return plan;
}

int64_t place_tiles(AttendBlocksArgs& args, int32_t n_warps) {
  const AttendRowsArgs& a = args.rows;
  const int32_t n_queries = n_warps * attention::kWarpQueries;
  SharedRoom room;
  args.keys_at = room.take(int64_t{attention::kRingStages} * attention::stage_words(per_row(a)));
  args.weights_at = room.take(int64_t{n_warps} * attention::kWarpWeights);
  args.outputs_at = room.take(int64_t{n_queries} * attention::value_chunks(a.value_dim) * attention::kChunkDims);
  args.queries_at = room.take(int64_t{n_queries} * attention::padded_dim(a.head_dim));
  args.places_at = room.take(int64_t{n_queries} * 4);
  return room.n_bytes();
}

int64_t place_few(AttendBlocksArgs& args, int32_t n_queries, int32_t group_tiles) {
  const AttendRowsArgs& a = args.rows;
  const int32_t key_stages = group_tiles * attention::key_stages(a.head_dim);
  const int32_t value_stages = group_tiles * attention::kTilePages * attention::value_chunks(a.value_dim);
  SharedRoom room;
  args.group_tiles = group_tiles;
  args.keys_at = room.take(int64_t{key_stages} * attention::stage_words(per_row(a)));
  args.values_at = room.take(int64_t{value_stages} * attention::value_stage_words(a.head_dim, per_row(a)));
  args.sums_at = room.take(int64_t{std::max(key_stages, value_stages)} * n_queries * attention::kChunkDims);
  args.weights_at = room.take(int64_t{group_tiles} * attention::kKeyTile / 2 * attention::weight_stride(n_queries));
  args.outputs_at = room.take(int64_t{n_queries} * attention::value_chunks(a.value_dim) * attention::kChunkDims);
  args.queries_at = room.take(int64_t{n_queries} * attention::padded_dim(a.head_dim));
  return room.n_bytes();
}

// The most warps whose queries fit.
int32_t tiles_warps(const DeviceInfo& device, const AttendRowsArgs& a) {
  AttendBlocksArgs args{.rows = a};
  int32_t n = attention::kMostWarps;
  while (n > 1 && place_tiles(args, n) > device.max_shared_bytes) --n;
  return n;
}

// Tiles at a time, so that each warp has a part of their keys if there is room; 0: not even for one tile.
int32_t few_tiles(const DeviceInfo& device, const AttendRowsArgs& a) {
  if (a.is_latent) return 0;
  AttendBlocksArgs args{.rows = a};
  int32_t n = attention::kMostGroupTiles;
  while (n > 1 && n * attention::key_stages(a.head_dim) > attention::kMostWarps) n /= 2;
  while (n > 0 && place_few(args, kFewQueries, n) > device.max_shared_bytes) n /= 2;
  return n;
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

// Room for 4 queries or for 8.
int32_t few_room(const BlockPlan& plan) {
  return plan.n_queries <= 4 ? 4 : kFewQueries;
}
int32_t n_warps_of(const BlockPlan& plan) {
  return plan.group_tiles > 0 ? attention::kMostWarps : attention::up_to(plan.n_queries, attention::kWarpQueries);
}
int64_t place_blocks(AttendBlocksArgs& args, const BlockPlan& plan) {
  return plan.group_tiles > 0 ? place_few(args, few_room(plan), plan.group_tiles) : place_tiles(args, n_warps_of(plan));
}

bool is_few(const BlockPlan& few, const SeqSlice& seq) {
  if (few.n_queries == 0) return false;
  return seq.n_rows == 1 || seq.n_rows * few.block_heads * few.n_parts <= kFewQueriesOfSlice;
}

// Those of the slices that are few, or of the others.
void add_tiles(const AttendRowsArgs& a, std::span<const SeqSlice> seqs, bool wants_few, AttendPlan& plan) {
  BlockPlan& blocks = wants_few ? plan.few : plan.many;
  const size_t first = plan.tiles.size();
  int32_t most_rows = 0;
  for (const SeqSlice& seq : seqs) {
    if (is_few(plan.few, seq) != wants_few) continue;
    for (int32_t i = 0; i < seq.n_rows; i += blocks.tile_rows) {
      const RowTile tile{seq.first_row + i, std::min(blocks.tile_rows, seq.n_rows - i)};
      plan.tiles.push_back(tile);
      plan.n_splits = std::max(plan.n_splits, splits_of(a, seq, tile));
      most_rows = std::max(most_rows, tile.n_rows);
    }
  }
  blocks.n_tiles = static_cast<int32_t>(plan.tiles.size() - first);
  blocks.n_queries = most_rows * blocks.block_heads;
  AttendBlocksArgs placed{.rows = a};
  if (blocks.n_tiles > 0) blocks.shared_bytes = place_blocks(placed, blocks);
}

Kernel<AttendBlocksArgs> few_kernel(const AttendRowsArgs& a, int32_t n_queries) {
  switch (static_cast<KvFormat>(a.pages.format)) {
    case KvFormat::kBf16:
      return n_queries == 4 ? kernel::attend_few4_bf16 : kernel::attend_few8_bf16;
    case KvFormat::kF32:
      return n_queries == 4 ? kernel::attend_few4_f32 : kernel::attend_few8_f32;
    case KvFormat::kQ8:
      break;
  }
  return n_queries == 4 ? kernel::attend_few4_q8 : kernel::attend_few8_q8;
}

Kernel<AttendBlocksArgs> tiles_kernel(const AttendRowsArgs& a) {
  switch (static_cast<KvFormat>(a.pages.format)) {
    case KvFormat::kBf16:
      return kernel::attend_tiles_bf16;
    case KvFormat::kF32:
      return kernel::attend_tiles_f32;
    case KvFormat::kQ8:
      break;
  }
  return kernel::attend_tiles_q8;
}

// tiles: of the kernel.
void run_blocks(Device& device, AttendBlocksArgs args, const AttendPlan& plan, const BlockPlan& blocks) {
  if (blocks.n_tiles == 0) return;
  args.block_heads = blocks.block_heads;
  args.n_parts = blocks.n_parts;
  const Launch launch{.x = static_cast<uint32_t>(blocks.n_tiles),
                      .y = static_cast<uint32_t>(args.rows.n_kv_heads * blocks.n_parts),
                      .z = plan.shares_splits ? static_cast<uint32_t>(plan.n_splits) : 1u,
                      .n_threads = static_cast<uint32_t>(32 * n_warps_of(blocks)),
                      .shared_bytes = static_cast<uint32_t>(place_blocks(args, blocks))};
  device.run(blocks.group_tiles > 0 ? few_kernel(args.rows, few_room(blocks)) : tiles_kernel(args.rows), launch, args);
}

}  // namespace

void store_pages(Device& device, const StorePagesArgs& args) {
  const Launch launch{.x = static_cast<uint32_t>(args.n_rows),
                      .y = static_cast<uint32_t>(args.n_kv_heads),
                      .z = args.v == nullptr ? 1u : 2u,
                      .n_threads = kStoreThreads};
  device.run(kernel::store_pages, launch, args);
}

AttendPlan plan_attention(const DeviceInfo& device, const AttendRowsArgs& args, std::span<const SeqSlice> seqs) {
  const int32_t group_heads = args.n_heads / args.n_kv_heads;
  const int32_t group_tiles = few_tiles(device, args);
  AttendPlan plan{.few = blocks_of(group_tiles > 0 ? kFewQueries : 0, group_heads),
                  .many = blocks_of(tiles_warps(device, args) * attention::kWarpQueries, group_heads)};
  plan.few.group_tiles = group_tiles;
  add_tiles(args, seqs, true, plan);
  add_tiles(args, seqs, false, plan);
  if (plan.n_splits == 1) return plan;
  const int32_t n_blocks =
      args.n_kv_heads * (plan.few.n_tiles * plan.few.n_parts + plan.many.n_tiles * plan.many.n_parts);
  const size_t bytes = static_cast<size_t>(args.n_rows) * static_cast<size_t>(args.n_heads) *
                       static_cast<size_t>(plan.n_splits) * static_cast<size_t>(partial_floats(args)) * sizeof(float);
  plan.shares_splits = n_blocks < device.n_processors && bytes <= kMostPartialBytes;
  if (plan.shares_splits) plan.partial_bytes = bytes;
  return plan;
}

void attend_rows(Device& device, const AttendRowsArgs& args, const AttendPlan& plan, const AttendRoom& room) {
  AttendBlocksArgs blocks{.rows = args,
                          .tiles = room.tiles,
                          .partials = reinterpret_cast<float*>(room.partials),
                          .partial_floats = partial_floats(args),
                          .n_splits = plan.n_splits};
  run_blocks(device, blocks, plan, plan.few);
  blocks.tiles += plan.few.n_tiles;
  run_blocks(device, blocks, plan, plan.many);
  if (!plan.shares_splits) return;
  const Launch combine{
      .x = static_cast<uint32_t>(args.n_rows), .y = static_cast<uint32_t>(args.n_heads), .n_threads = kCombineThreads};
  device.run(kernel::attend_combine, combine, blocks);
}

}  // namespace candor::backend::cuda
