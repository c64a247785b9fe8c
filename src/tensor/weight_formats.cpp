#include "tensor/weight_formats.h"

#include <cstddef>
#include <cstring>

#include "tensor/encode.h"
#include "tensor/tensor_view.h"

namespace candor {

void decode_elements(DType dtype, const std::byte* src, int64_t n, float* dst) {
  with_block(dtype, [=]<class Block>(BlockType<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    for (int64_t i = 0; i < n / Block::kElements; ++i) {
      Block block;
      std::memcpy(&block, src + static_cast<size_t>(i) * sizeof(Block), sizeof(Block));
      quant::decode_block(block, dst + i * Block::kElements);
    }
  });
}

void encode_elements(DType dtype, const float* src, int64_t n, std::byte* dst) {
  with_block(dtype, [=]<class Block>(BlockType<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    for (int64_t i = 0; i < n / Block::kElements; ++i) {
      Block block;
      quant::encode_block(src + i * Block::kElements, block);
      std::memcpy(dst + static_cast<size_t>(i) * sizeof(Block), &block, sizeof(Block));
    }
  });
}

}  // namespace candor
