#include "backend/cpu/cpu_kv.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"

namespace candor::backend::cpu {
namespace {

static_assert(kernels::kPageTokens == kBlockTokens);

kernels::KvFormat format_of(KvType type) {
  switch (type) {
    case KvType::kF32:
      return kernels::KvFormat::kF32;
    case KvType::kQ8_0:
      return kernels::KvFormat::kQ8;
    case KvType::kBf16:
      break;
  }
  return kernels::KvFormat::kBf16;
}

// As kv_pool_block_bytes() says.
std::optional<size_t> block_bytes_of(const KvLayout& layout) {
  const auto n_planes = static_cast<size_t>(layout.n_planes());
  const size_t first = n_planes * kernels::kv_page_bytes(layout.heads_of(0).head_dim, format_of(layout.type));
  size_t total = 0;
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    const KvHeads heads = layout.heads_of(layer);
    const size_t head = n_planes * kernels::kv_page_bytes(heads.head_dim, format_of(layout.type));
    const auto bytes = checked_mul(static_cast<size_t>(heads.n_kv_heads), head);
    if (!bytes || *bytes > SIZE_MAX / 2 - total) return std::nullopt;
    total += *bytes;
  }
  return total / first % 2 == 0 ? total + first : total;
}

bool is_empty(const KvLayout& layout) {
  if (layout.n_layers < 1) return true;
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    const KvHeads heads = layout.heads_of(layer);
    if (heads.n_kv_heads < 1 || heads.head_dim < 1) return true;
  }
  return false;
}

std::string shape_text(const KvLayout& layout) {
  return std::to_string(layout.n_layers) + " layers x " + std::to_string(layout.n_kv_heads) + " heads x " +
         std::to_string(layout.head_dim);
}

}  // namespace

Result<std::unique_ptr<CpuKv>> CpuKv::make(const KvLayout& layout, KvSize size) {
  const int32_t n_blocks = size.n_blocks;
  if (is_empty(layout) || n_blocks < 1) {
    return fail(ErrorKind::kInvalidInput, "K/V pages: " + std::to_string(n_blocks) + " blocks of " +
                                              shape_text(layout) + ", expected at least 1 of each");
  }
  const std::optional<size_t> block = block_bytes_of(layout);
  const std::optional<size_t> total = block ? checked_mul<size_t>(*block, static_cast<size_t>(n_blocks)) : std::nullopt;
  if (!total) {
    return fail(ErrorKind::kOutOfMemory, "K/V pages: " + std::to_string(n_blocks) + " blocks of " + shape_text(layout) +
                                             " exceed the address space; ask for fewer");
  }
  CANDOR_ASSIGN(platform::HugeBuffer memory, platform::HugeBuffer::allocate(*total, "K/V pages"));
  std::unique_ptr<CpuKv> kv(new CpuKv(layout, size, *block, std::move(memory)));
  if (layout.state.n_layers == 0 || size.n_states == 0) return kv;
  const auto state_bytes = checked_mul<int64_t>(state_slot_bytes(layout.state), size.n_states);
  if (!state_bytes) return fail(ErrorKind::kOutOfMemory, "recurrent states exceed the address space; ask for fewer");
  CANDOR_ASSIGN(kv->states_, platform::HugeBuffer::allocate(static_cast<size_t>(*state_bytes), "recurrent states"));
  kv->n_states_ = size.n_states;
  return kv;
}

CpuKv::CpuKv(const KvLayout& layout, KvSize size, size_t block_bytes, platform::HugeBuffer memory)
    : layout_(layout), n_blocks_(size.n_blocks), n_states_(0), block_bytes_(block_bytes), memory_(std::move(memory)) {
  size_t offset = 0;
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    const KvHeads heads = layout.heads_of(layer);
    const size_t page = kernels::kv_page_bytes(heads.head_dim, format_of(layout.type));
    places_.push_back({offset, page});
    offset += static_cast<size_t>(layout.n_planes()) * static_cast<size_t>(heads.n_kv_heads) * page;
  }
}

void CpuKv::copy_block(BlockId src, BlockId dst, int32_t n_tokens) {
  CANDOR_CHECK(src >= 0 && src < n_blocks_ && dst >= 0 && dst < n_blocks_);
  CANDOR_CHECK(n_tokens >= 0 && n_tokens <= kBlockTokens);
  if (src == dst) return;
  std::memcpy(memory_.data() + static_cast<size_t>(dst) * block_bytes_,
              memory_.data() + static_cast<size_t>(src) * block_bytes_, block_bytes_);
}

std::span<std::byte> CpuKv::block_memory(BlockId block) {
  CANDOR_CHECK(block >= 0 && block < n_blocks_);
  return {memory_.data() + static_cast<size_t>(block) * block_bytes_, block_bytes_};
}

// As kernels/attend.h lays pages out.
bool CpuKv::read_key(const KeyPlace& place, std::span<float> key) {
  const BlockId block[] = {place.block};
  const kernels::KvPages at = pages(block, place.layer, place.kv_head);
  const std::byte* page = at.base + static_cast<size_t>(place.block) * at.block_bytes + at.k_offset;
  const size_t n_padded = (key.size() + 15) / 16 * 16;
  const auto token = static_cast<size_t>(place.token);
  const auto single = [&](size_t dim) { return (token / 16 * n_padded + dim) * 16 + token % 16; };
  const size_t n_scales = (key.size() + kernels::kKvScaleDims - 1) / kernels::kKvScaleDims * kBlockTokens;
  for (size_t dim = 0; dim < key.size(); ++dim) {
    if (at.format == kernels::KvFormat::kF32) {
      std::memcpy(&key[dim], page + single(dim) * sizeof(float), sizeof(float));
    } else if (at.format == kernels::KvFormat::kBf16) {
      bf16 half{};
      const size_t pair = (token / 16 * (n_padded / 2) + dim / 2) * 16 + token % 16;
      std::memcpy(&half, page + (2 * pair + dim % 2) * sizeof(half), sizeof(half));
      key[dim] = bf16_to_f32(half);
    } else {
      f16 scale{};
      std::memcpy(&scale, page + (dim / kernels::kKvScaleDims * kBlockTokens + token) * sizeof(scale), sizeof(scale));
      const auto code = static_cast<int8_t>(page[n_scales * sizeof(scale) + single(dim)]);
      key[dim] = static_cast<float>(code) * f16_to_f32(scale);
    }
  }
  return true;
}

std::span<std::byte> CpuKv::state_memory(StateId state) {
  CANDOR_CHECK(state >= 0 && state < n_states_);
  const auto n_bytes = static_cast<size_t>(state_slot_bytes(layout_.state));
  return {states_.data() + static_cast<size_t>(state) * n_bytes, n_bytes};
}

kernels::KvPages CpuKv::pages(std::span<const BlockId> blocks, int32_t layer, int32_t kv_head) {
  const LayerPlace& place = places_[static_cast<size_t>(layer)];
  const auto n_planes = static_cast<size_t>(layout_.n_planes());
  const size_t first = place.offset + n_planes * static_cast<size_t>(kv_head) * place.page_bytes;
  return {.base = memory_.data(),
          .block_table = blocks.data(),
          .block_bytes = block_bytes_,
          .k_offset = first,
          .v_offset = first + (n_planes - 1) * place.page_bytes,
          .format = format_of(layout_.type)};
}

}  // namespace candor::backend::cpu
