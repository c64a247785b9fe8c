#include "backend/cpu/kv_places.h"

#include <string>

#include "base/checked.h"

namespace candor::backend::cpu {
namespace {

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

kernels::KvFormat format_of(KvType type) {
  switch (type) {
    case KvType::kF32:
      return kernels::KvFormat::kF32;
    case KvType::kQ8_0:
      return kernels::KvFormat::kQ8;
    case KvType::kQ4:
      return kernels::KvFormat::kQ4;
    case KvType::kBf16:
      break;
  }
  return kernels::KvFormat::kBf16;
}

int32_t rotated_dims(const KvLayout& layout, int32_t layer) {
  if (layout.type != KvType::kQ4) return 0;
  return kernels::rotated_dims(layout.heads_of(layer).head_dim, layout.latent_dim);
}

Result<KvPlaces> KvPlaces::make(const KvLayout& layout, int32_t n_blocks) {
  const std::string pages = "K/V pages: " + std::to_string(n_blocks) + " blocks of " + shape_text(layout);
  if (is_empty(layout) || n_blocks < 1) return fail(ErrorKind::kInvalidInput, pages + ", expected at least 1 of each");
  const auto too_large = [&] {
    return fail(ErrorKind::kOutOfMemory, pages + " exceed the address space; ask for fewer");
  };
  KvPlaces places;
  const auto n_planes = static_cast<size_t>(layout.n_planes());
  const kernels::KvFormat format = format_of(layout.type);
  size_t total = 0;
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    const KvHeads heads = layout.heads_of(layer);
    const size_t page = kernels::kv_page_bytes(heads.head_dim, format);
    places.layers_.push_back({total, page});
    const auto bytes = checked_mul(static_cast<size_t>(heads.n_kv_heads), n_planes * page);
    if (!bytes || *bytes > SIZE_MAX / 2 - total) return too_large();
    total += *bytes;
  }
  const size_t first = n_planes * places.layers_.front().page_bytes;
  places.block_bytes_ = total / first % 2 == 0 ? total + first : total;
  if (!checked_mul<size_t>(places.block_bytes_, static_cast<size_t>(n_blocks))) return too_large();
  return places;
}

}  // namespace candor::backend::cpu
