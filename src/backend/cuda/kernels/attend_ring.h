#pragma once
// Keys and values of one block's tiles on their way through a ring of stages in shared memory. Included behind
// language.h.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/attend_args.h"
#include "backend/cuda/kernels/attend_block.h"
#include "backend/cuda/kernels/attend_codes.h"
#include "backend/cuda/kernels/attend_pages.h"
#include "backend/cuda/kernels/attend_sizes.h"
#include "backend/cuda/kernels/attend_stages.h"
#include "backend/cuda/kernels/language.h"

namespace candor::backend::cuda::attention {

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

  // The stages in turn. All threads are done with the one before.
  CANDOR_DEVICE Stage next() {
    wait_async<kRingStages - 2>();
    sync_block();
    const Stage stage = place(n_read_++ % kRingStages);
    ask();
    return stage;
  }

 private:
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

}  // namespace candor::backend::cuda::attention
