#pragma once
// The K/V cache in the CPU's memory: one piece of memory for the whole pool of blocks, each of which keeps some tokens'
// keys and values of all layers: [block][layer][kv head][K page, V page]. A block has an idle pair of pages at its end
// where the others are even in number (op_specs.h). kernels/attend.h says what lies where inside a page.

#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "backend/op_specs.h"
#include "base/ids.h"
#include "kernels/attend.h"
#include "platform/huge_buffer.h"

namespace candor::backend::cpu {

class CpuKv final : public KvStore {
 public:
  // Refuses an empty layout and a pool that memory can't hold.
  static Result<std::unique_ptr<CpuKv>> make(const KvLayout& layout, int32_t n_blocks);

  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return n_blocks_; }
  size_t n_bytes() const override { return memory_.size(); }
  // Copies whole pages: tokens past n_tokens are overwritten before anything reads them.
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override;

  // blocks: the sequence's row of the block table; borrowed by the result.
  kernels::KvPages pages(std::span<const BlockId> blocks, int32_t layer, int32_t kv_head);

 private:
  CpuKv(const KvLayout& layout, int32_t n_blocks, size_t block_bytes, platform::HugeBuffer memory);

  // Constant after construction.
  KvLayout layout_;
  int32_t n_blocks_;
  size_t page_bytes_;
  size_t block_bytes_;
  platform::HugeBuffer memory_;
};

}  // namespace candor::backend::cpu
