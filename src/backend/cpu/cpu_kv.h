#pragma once
// The paged K/V cache in the CPU's memory, and the slots of recurrent states beside it. One allocation holds the pool;
// each block holds the keys and values of kBlockTokens tokens, all layers: [block][layer][kv head][K page, V page],
// with latent attention K pages only. The layout inside a page is in kernels/attend.h, the same for every kernel table.
// Blocks are kept on disk as they are: who changes a layout changes prefix_store/record.cpp's kMagic.

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/kv_places.h"
#include "backend/op_specs.h"
#include "base/error.h"
#include "base/ids.h"
#include "kernels/attend.h"
#include "platform/huge_buffer.h"

namespace candor::backend::cpu {

class CpuKv final : public KvStore {
 public:
  // Refuses an empty layout and a pool that memory can't hold.
  static Result<std::unique_ptr<CpuKv>> make(const KvLayout& layout, KvSize size);

  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return n_blocks_; }
  int32_t n_states() const override { return n_states_; }
  size_t n_bytes() const override { return memory_.size() + states_.size(); }
  // Copies whole pages: tokens past n_tokens are overwritten before anything reads them.
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override;
  std::span<std::byte> block_memory(BlockId block) override;
  std::span<std::byte> state_memory(StateId state) override;
  bool read_key(const KeyPlace& place, std::span<float> key) override;

  // One layer of a slot; layout: state_specs.h.
  float* state(StateId slot, int32_t layer) {
    CANDOR_DCHECK(slot >= 0 && slot < n_states_ && layer < layout_.state.n_layers);
    return reinterpret_cast<float*>(states_.data()) + slot * layout_.state.slot_floats() +
           layer * layout_.state.layer_floats;
  }

  // blocks: the sequence's row of the block table; borrowed by the result.
  kernels::KvPages pages(std::span<const BlockId> blocks, int32_t layer, int32_t kv_head);

 private:
  CpuKv(const KvLayout& layout, KvSize size, KvPlaces places, platform::HugeBuffer memory);

  // Constant after construction.
  KvLayout layout_;
  int32_t n_blocks_;
  int32_t n_states_;
  KvPlaces places_;
  platform::HugeBuffer memory_;
  platform::HugeBuffer states_;  // [slot][layer]
};

}  // namespace candor::backend::cpu
