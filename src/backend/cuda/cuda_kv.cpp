#include "backend/cuda/cuda_kv.h"

#include <cstddef>
#include <optional>
#include <utility>

#include "base/checked.h"

namespace candor::backend::cuda {

Result<std::unique_ptr<CudaKv>> CudaKv::make(const KvLayout& layout, KvSize size, Device& device) {
  CANDOR_ASSIGN(cpu::KvPlaces places, cpu::KvPlaces::make(layout, size.n_blocks));
  const size_t total = places.block_bytes() * static_cast<size_t>(size.n_blocks);
  std::unique_ptr<CudaKv> kv(new CudaKv(layout, size, std::move(places), device));
  CANDOR_ASSIGN(kv->memory_, DeviceMemory::make(device, total, MemoryUse::kKv));
  if (layout.state.n_layers == 0 || size.n_states == 0) return kv;
  const auto state_bytes = checked_mul<int64_t>(state_slot_bytes(layout.state), size.n_states);
  if (!state_bytes) return fail(ErrorKind::kOutOfMemory, "recurrent states exceed the address space; ask for fewer");
  CANDOR_ASSIGN(kv->states_, DeviceMemory::make(device, static_cast<size_t>(*state_bytes), MemoryUse::kKv));
  kv->n_states_ = size.n_states;
  return kv;
}

void CudaKv::copy_block(BlockId src, BlockId dst, int32_t n_tokens) {
  CANDOR_CHECK(src >= 0 && src < n_blocks_ && dst >= 0 && dst < n_blocks_);
  CANDOR_CHECK(n_tokens >= 0 && n_tokens <= kBlockTokens);
  if (src == dst) return;
  const size_t n = places_.block_bytes();
  device_.copy(memory_.data() + static_cast<size_t>(dst) * n, memory_.data() + static_cast<size_t>(src) * n, n);
}

PagePlaces CudaKv::pages(const int32_t* block_table, int32_t max_blocks, int32_t layer) const {
  const cpu::LayerPlace& place = places_.layer(layer);
  const int32_t n_planes = layout_.n_planes();
  return {.base = memory_.data(),
          .block_table = block_table,
          .block_bytes = static_cast<int64_t>(places_.block_bytes()),
          .k_offset = static_cast<int64_t>(place.offset),
          .v_offset = static_cast<int64_t>(place.offset + static_cast<size_t>(n_planes - 1) * place.page_bytes),
          .head_bytes = static_cast<int64_t>(place.page_bytes) * n_planes,
          .max_blocks = max_blocks,
          .format = static_cast<int32_t>(cpu::format_of(layout_.type)),
          .rotated_dims = cpu::rotated_dims(layout_, layer)};
}

float* CudaKv::state(StateId slot, int32_t layer) const {
  CANDOR_DCHECK(slot >= 0 && slot < n_states_ && layer < layout_.state.n_layers);
  return states_.as<float>() + slot * layout_.state.slot_floats() + layer * layout_.state.layer_floats;
}

}  // namespace candor::backend::cuda
