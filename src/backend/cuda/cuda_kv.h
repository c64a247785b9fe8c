#pragma once
// The paged K/V cache in the device's memory, and the slots of recurrent states beside it. Blocks hold what the CPU's
// hold, byte for byte (backend/cpu/kv_places.h).

#include <cstdint>
#include <memory>

#include "backend/backend.h"
#include "backend/cpu/kv_places.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernels/attend_args.h"
#include "backend/op_specs.h"
#include "base/error.h"
#include "base/ids.h"

namespace candor::backend::cuda {

class CudaKv final : public KvStore {
 public:
  // Refuses an empty layout and a pool that the device's memory can't hold.
  static Result<std::unique_ptr<CudaKv>> make(const KvLayout& layout, KvSize size, Device& device);

  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return n_blocks_; }
  int32_t n_states() const override { return n_states_; }
  size_t n_bytes() const override { return memory_.size() + states_.size(); }
  // Between steps. Copies whole pages: tokens past n_tokens are overwritten before anything reads them.
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override;

  // block_table: of the device, [n_seqs, max_blocks].
  PagePlaces pages(const int32_t* block_table, int32_t max_blocks, int32_t layer) const;
  size_t page_bytes(int32_t layer) const { return places_.layer(layer).page_bytes; }

  // One layer of a slot, of the device; layout: state_specs.h.
  float* state(StateId slot, int32_t layer) const;

 private:
  CudaKv(const KvLayout& layout, KvSize size, cpu::KvPlaces places, Device& device)
      : layout_(layout), n_blocks_(size.n_blocks), places_(std::move(places)), device_(device) {}

  KvLayout layout_;
  int32_t n_blocks_;
  int32_t n_states_ = 0;
  cpu::KvPlaces places_;
  Device& device_;
  DeviceMemory memory_;
  DeviceMemory states_;  // [slot][layer]
};

}  // namespace candor::backend::cuda
