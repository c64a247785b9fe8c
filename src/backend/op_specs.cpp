#include "backend/op_specs.h"

namespace candor::backend {

int64_t kv_block_bytes(const KvLayout& layout) {
  const int64_t vectors = int64_t{2} * layout.n_layers * layout.n_kv_heads * kBlockTokens;
  switch (layout.type) {
    case KvType::kF32: return vectors * layout.head_dim * 4;
    case KvType::kBf16: return vectors * layout.head_dim * 2;
    case KvType::kQ8_0: return vectors * layout.head_dim / 32 * 34;
  }
  return 0;
}

}  // namespace candor::backend
