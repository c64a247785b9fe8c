#pragma once
// Where the pages of each layer lie in a block of K/V: [layer][kv head][K page, V page], with latent attention K pages
// only. Layers may differ in the number and width of their K/V heads. Where layers x heads is even, each block is
// padded by the pages of one head (kv_pool_block_bytes() in op_specs.h says why). Constant after construction.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/op_specs.h"
#include "base/error.h"
#include "kernels/attend.h"

namespace candor::backend::cpu {

kernels::KvFormat format_of(KvType type);
// Of kernels::KvPages.
int32_t rotated_dims(const KvLayout& layout, int32_t layer);

// Of a block.
struct LayerPlace {
  size_t offset = 0;
  size_t page_bytes = 0;
};

class KvPlaces {
 public:
  // Refuses an empty layout, and as many blocks as no address space holds.
  static Result<KvPlaces> make(const KvLayout& layout, int32_t n_blocks);

  const LayerPlace& layer(int32_t layer) const { return layers_[static_cast<size_t>(layer)]; }
  size_t block_bytes() const { return block_bytes_; }

 private:
  std::vector<LayerPlace> layers_;
  size_t block_bytes_ = 0;
};

}  // namespace candor::backend::cpu
