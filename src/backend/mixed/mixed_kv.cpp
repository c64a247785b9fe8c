#include "backend/mixed/mixed_kv.h"

#include <utility>

namespace candor::backend::mixed {
namespace {

// Layers [0, n) by side_of(layer), each with its number among those of its side.
template <class SideOf>
std::vector<MixedKv::LayerPlace> number_layers(int32_t n, SideOf side_of) {
  std::array<int32_t, kSides> n_before{};
  std::vector<MixedKv::LayerPlace> places;
  for (int32_t layer = 0; layer < n; ++layer) {
    const Side side = side_of(layer);
    places.push_back({side, n_before[static_cast<size_t>(side)]++});
  }
  return places;
}

// The smallest layout that every backend takes.
KvLayout with_a_layer(KvLayout layout) {
  layout.n_layers = 1;
  layout.n_kv_heads = 1;
  layout.head_dim = 32;
  layout.heads.clear();
  return layout;
}

}  // namespace

KvLayout layout_on(Side side, const KvLayout& layout, const Placement& placement) {
  KvLayout own = layout;
  own.n_layers = 0;
  own.heads.clear();
  for (int32_t layer = 0; layer < layout.n_layers; ++layer) {
    if (placement.of_kv_layer(layer) != side) continue;
    ++own.n_layers;
    if (!layout.heads.empty()) own.heads.push_back(layout.heads_of(layer));
  }
  own.state.n_layers = 0;
  for (int32_t layer = 0; layer < layout.state.n_layers; ++layer) {
    if (placement.of_state_layer(layer) == side) ++own.state.n_layers;
  }
  return own;
}

Result<std::unique_ptr<MixedKv>> MixedKv::make(const KvLayout& layout, KvSize size, const Placement& placement,
                                               const Backends& backends) {
  std::unique_ptr<MixedKv> kv(new MixedKv(layout, size));
  kv->kv_layers_ = number_layers(layout.n_layers, [&](int32_t layer) { return placement.of_kv_layer(layer); });
  kv->state_layers_ =
      number_layers(layout.state.n_layers, [&](int32_t layer) { return placement.of_state_layer(layer); });
  for (const Side side : {Side::kDevice, Side::kHost}) {
    const auto place = static_cast<size_t>(side);
    KvLayout own = layout_on(side, layout, placement);
    kv->has_pages_[place] = own.n_layers > 0;
    KvSize own_size = size;
    if (own.n_layers == 0) {
      own = with_a_layer(std::move(own));
      own_size.n_blocks = 1;
    }
    CANDOR_ASSIGN(kv->stores_[place], backends[place]->make_kv(own, own_size));
  }
  return kv;
}

size_t MixedKv::n_bytes() const {
  return on(Side::kDevice).n_bytes() + on(Side::kHost).n_bytes();
}

void MixedKv::copy_block(BlockId src, BlockId dst, int32_t n_tokens) {
  for (const Side side : {Side::kDevice, Side::kHost}) {
    if (has_pages_[static_cast<size_t>(side)]) on(side).copy_block(src, dst, n_tokens);
  }
}

bool MixedKv::read_key(const KeyPlace& place, std::span<float> key) {
  const LayerPlace layer = kv_layer(place.layer);
  KeyPlace own = place;
  own.layer = layer.layer;
  return on(layer.side).read_key(own, key);
}

}  // namespace candor::backend::mixed
