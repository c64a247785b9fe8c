#include "backend/cpu/cpu_kv.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/half.h"
#include "kernels/kv_codes.h"

namespace candor::backend::cpu {
namespace {

static_assert(kernels::kPageTokens == kBlockTokens);

size_t code_place(size_t n_dims, size_t token, size_t dim) {
  return (token / 16 * n_dims + dim / 2 * 2) * 16 + token % 16 * 2 + dim % 2;
}

int8_t q4_level(const std::byte* codes, size_t head_dim, size_t token, size_t dim) {
  const auto n_pairs = static_cast<size_t>(kernels::kv_q4_dims(checked_cast<int32_t>(head_dim))) / 2;
  const std::byte pair = codes[code_place(n_pairs, token, dim / 32 * 16 + dim % 16)];
  return kernels::kQ4Levels[std::to_integer<size_t>(dim / 16 % 2 == 0 ? pair & std::byte{15} : pair >> 4)];
}

void rotate_back(std::span<float> key, size_t n_block) {
  for (size_t stride = 1; stride < n_block; stride *= 2) {
    for (size_t i = 0; i < key.size(); ++i) {
      if (i / stride % 2 != 0) continue;
      const float a = key[i];
      key[i] = a + key[i + stride];
      key[i + stride] = a - key[i + stride];
    }
  }
  for (float& x : key) x *= kernels::rotation_norm(checked_cast<int32_t>(n_block));
}

}  // namespace

Result<std::unique_ptr<CpuKv>> CpuKv::make(const KvLayout& layout, KvSize size) {
  CANDOR_ASSIGN(KvPlaces places, KvPlaces::make(layout, size.n_blocks));
  const size_t total = places.block_bytes() * static_cast<size_t>(size.n_blocks);
  CANDOR_ASSIGN(platform::HugeBuffer memory, platform::HugeBuffer::allocate(total, "K/V pages"));
  std::unique_ptr<CpuKv> kv(new CpuKv(layout, size, std::move(places), std::move(memory)));
  if (layout.state.n_layers == 0 || size.n_states == 0) return kv;
  const auto state_bytes = checked_mul<int64_t>(state_slot_bytes(layout.state), size.n_states);
  if (!state_bytes) return fail(ErrorKind::kOutOfMemory, "recurrent states exceed the address space; ask for fewer");
  CANDOR_ASSIGN(kv->states_, platform::HugeBuffer::allocate(static_cast<size_t>(*state_bytes), "recurrent states"));
  kv->n_states_ = size.n_states;
  return kv;
}

CpuKv::CpuKv(const KvLayout& layout, KvSize size, KvPlaces places, platform::HugeBuffer memory)
    : layout_(layout), n_blocks_(size.n_blocks), n_states_(0), places_(std::move(places)), memory_(std::move(memory)) {}

void CpuKv::copy_block(BlockId src, BlockId dst, int32_t n_tokens) {
  CANDOR_CHECK(src >= 0 && src < n_blocks_ && dst >= 0 && dst < n_blocks_);
  CANDOR_CHECK(n_tokens >= 0 && n_tokens <= kBlockTokens);
  if (src == dst) return;
  std::memcpy(memory_.data() + static_cast<size_t>(dst) * places_.block_bytes(),
              memory_.data() + static_cast<size_t>(src) * places_.block_bytes(), places_.block_bytes());
}

std::span<std::byte> CpuKv::block_memory(BlockId block) {
  CANDOR_CHECK(block >= 0 && block < n_blocks_);
  return {memory_.data() + static_cast<size_t>(block) * places_.block_bytes(), places_.block_bytes()};
}

// As kernels/attend.h lays pages out.
bool CpuKv::read_key(const KeyPlace& place, std::span<float> key) {
  const BlockId block[] = {place.block};
  const kernels::KvPages at = pages(block, place.layer, place.kv_head);
  const std::byte* page = at.base + static_cast<size_t>(place.block) * at.block_bytes + at.k_offset;
  const size_t n_padded = (key.size() + 15) / 16 * 16;
  const auto token = static_cast<size_t>(place.token);
  const size_t n_scales = (key.size() + kernels::kKvScaleDims - 1) / kernels::kKvScaleDims * kBlockTokens;
  for (size_t dim = 0; dim < key.size(); ++dim) {
    if (at.format == kernels::KvFormat::kF32) {
      std::memcpy(&key[dim], page + ((token / 16 * n_padded + dim) * 16 + token % 16) * sizeof(float), sizeof(float));
    } else if (at.format == kernels::KvFormat::kBf16) {
      bf16 half{};
      const size_t pair = (token / 16 * (n_padded / 2) + dim / 2) * 16 + token % 16;
      std::memcpy(&half, page + (2 * pair + dim % 2) * sizeof(half), sizeof(half));
      key[dim] = bf16_to_f32(half);
    } else {
      f16 scale{};
      std::memcpy(&scale, page + (dim / kernels::kKvScaleDims * kBlockTokens + token) * sizeof(scale), sizeof(scale));
      const std::byte* codes = page + n_scales * sizeof(scale);
      const bool is_q8 = at.format == kernels::KvFormat::kQ8;
      const auto level = is_q8 ? static_cast<int8_t>(codes[code_place(n_padded, token, dim)])
                               : q4_level(codes, key.size(), token, dim);
      key[dim] = static_cast<float>(level) * f16_to_f32(scale);
    }
  }
  if (at.rotated_dims > 0) rotate_back(key, static_cast<size_t>(at.rotated_dims));
  return true;
}

std::span<std::byte> CpuKv::state_memory(StateId state) {
  CANDOR_CHECK(state >= 0 && state < n_states_);
  const auto n_bytes = static_cast<size_t>(state_slot_bytes(layout_.state));
  return {states_.data() + static_cast<size_t>(state) * n_bytes, n_bytes};
}

kernels::KvPages CpuKv::pages(std::span<const BlockId> blocks, int32_t layer, int32_t kv_head) {
  const LayerPlace& place = places_.layer(layer);
  const auto n_planes = static_cast<size_t>(layout_.n_planes());
  const size_t first = place.offset + n_planes * static_cast<size_t>(kv_head) * place.page_bytes;
  return {.base = memory_.data(),
          .block_table = blocks.data(),
          .block_bytes = places_.block_bytes(),
          .k_offset = first,
          .v_offset = first + (n_planes - 1) * place.page_bytes,
          .format = format_of(layout_.type),
          .rotated_dims = rotated_dims(layout_, layer)};
}

}  // namespace candor::backend::cpu
