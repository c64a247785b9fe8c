#pragma once
// The memory of sequences on two sides: each side's store holds the layers that are placed there, under numbers of its
// own. A side without layers has a store that nothing reads.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/placement.h"
#include "base/error.h"
#include "base/ids.h"

namespace candor::backend::mixed {

// Of one side; no layers where it has none.
KvLayout layout_on(Side side, const KvLayout& layout, const Placement& placement);

class MixedKv final : public KvStore {
 public:
  using Backends = std::array<Backend*, kSides>;
  static Result<std::unique_ptr<MixedKv>> make(const KvLayout& layout, KvSize size, const Placement& placement,
                                               const Backends& backends);

  const KvLayout& layout() const override { return layout_; }
  int32_t n_blocks() const override { return size_.n_blocks; }
  int32_t n_states() const override { return layout_.state.n_layers > 0 ? size_.n_states : 0; }
  size_t n_bytes() const override;
  void copy_block(BlockId src, BlockId dst, int32_t n_tokens) override;
  bool read_key(const KeyPlace& place, std::span<float> key) override;

  KvStore& on(Side side) const { return *stores_[static_cast<size_t>(side)]; }
  struct LayerPlace {
    Side side = Side::kDevice;
    int32_t layer = 0;  // of that side's store
  };
  LayerPlace kv_layer(int32_t layer) const { return kv_layers_[static_cast<size_t>(layer)]; }
  LayerPlace state_layer(int32_t layer) const { return state_layers_[static_cast<size_t>(layer)]; }

 private:
  MixedKv(KvLayout layout, KvSize size) : layout_(std::move(layout)), size_(size) {}

  // Constant after make().
  KvLayout layout_;
  KvSize size_;
  std::vector<LayerPlace> kv_layers_;
  std::vector<LayerPlace> state_layers_;
  std::array<std::unique_ptr<KvStore>, kSides> stores_;
  std::array<bool, kSides> has_pages_{};
};

}  // namespace candor::backend::mixed
