#pragma once
// Launches of attention's kernels. One thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/cuda/device.h"
#include "backend/cuda/kernels/attend_args.h"
#include "backend/step_batch.h"

namespace candor::backend::cuda {

void store_pages(Launcher& launcher, const StorePagesArgs& args);

// How one kernel takes its tiles.
struct BlockPlan {
  int32_t n_tiles = 0;
  int32_t n_queries = 0;    // rows x heads that a block has room for; 0: the kernel takes no such rows
  int32_t block_heads = 0;  // query heads of a block
  int32_t n_parts = 0;      // blocks for those of a K/V head
  int32_t tile_rows = 0;    // of a tile, at most
  int32_t group_tiles = 0;  // key tiles at a time
  int64_t shared_bytes = 0;
  int32_t n_splits = 1;        // of those that a tile sees, at most
  bool shares_splits = false;  // each split has a block of its own, and the results are joined
};

// How the rows of a step are shared out among blocks of threads. Layers of one shape and window have equal plans.
struct AttendPlan {
  std::vector<RowTile> tiles{};  // those of `few`, then those of `many`
  BlockPlan few{};               // queries of one row or two
  BlockPlan many{};
  size_t partial_bytes = 0;
  size_t rotated_bytes = 0;  // of queries, where K and V are rotated
};
// args: pointers are not read. plan: another one, whose memory is taken over. REQUIRES: seqs cover its rows.
void plan_attention(const DeviceInfo& device, const AttendRowsArgs& args, std::span<const SeqSlice> seqs,
                    AttendPlan& plan);

// Of one step: both layers have one plan.
bool has_same_plan(const AttendRowsArgs& a, const AttendRowsArgs& b);

// What the plan needs on the device: its tiles, and room for partial results and rotated queries.
struct AttendRoom {
  const RowTile* tiles = nullptr;
  std::byte* partials = nullptr;  // [partial_bytes]
  std::byte* rotated = nullptr;   // [rotated_bytes]
};
void attend_rows(Launcher& launcher, const AttendRowsArgs& args, const AttendPlan& plan, const AttendRoom& room);

}  // namespace candor::backend::cuda
