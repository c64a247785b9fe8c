#include "tensor/weight_formats.h"

#include <cstddef>
#include <cstring>

#include "tensor/encode.h"
#include "tensor/tensor_view.h"

namespace candor {

namespace {

template <class Block>
void decode_blocks(const std::byte* src, int64_t n, float* dst) {
  for (int64_t i = 0; i < n / Block::kElements; ++i) {
    Block block;
    std::memcpy(&block, src + static_cast<size_t>(i) * sizeof(Block), sizeof(Block));
    quant::decode_block(block, dst + i * Block::kElements);
  }
}

template <class Block>
void encode_blocks(const float* src, int64_t n, std::byte* dst) {
  for (int64_t i = 0; i < n / Block::kElements; ++i) {
    Block block;
    quant::encode_block(src + i * Block::kElements, block);
    std::memcpy(dst + static_cast<size_t>(i) * sizeof(Block), &block, sizeof(Block));
  }
}

}  // namespace

std::string_view name_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kInt8:
      return "int8";
    case Arithmetic::kBf16:
      return "bf16";
    case Arithmetic::kF32:
      return "f32";
  }
  return {};
}

Arithmetic arithmetic_of(DType weights) {
  auto arithmetic = Arithmetic::kF32;
  const auto see = [&arithmetic]<class Block>(BlockType<Block>) {
    const bool is_bf16 = Block::kType == DType::kBF16 || Block::kFamily == quant::KernelFamily::kFloatBlocks;
    if (is_bf16) arithmetic = Arithmetic::kBf16;
    if (!is_bf16 && Block::kFamily != quant::KernelFamily::kFloats) arithmetic = Arithmetic::kInt8;
  };
  visit_block(weights, see, WeightBlocks{});
  return arithmetic;
}

void decode_elements(DType dtype, const std::byte* src, int64_t n, float* dst) {
  with_block(dtype, [=]<class Block>(BlockType<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    if constexpr (quant::ScaledRow<Block>) {
      Block::decode_row(src, n, dst);
    } else {
      decode_blocks<Block>(src, n, dst);
    }
  });
}

void encode_elements(DType dtype, const float* src, int64_t n, std::byte* dst) {
  with_block(dtype, [=]<class Block>(BlockType<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    if constexpr (quant::ScaledRow<Block>) {
      Block::encode_row(src, n, dst);
    } else {
      encode_blocks<Block>(src, n, dst);
    }
  });
}

void encode_rows(DType dtype, const float* src, int64_t n_rows, int64_t n, std::byte* dst) {
  const size_t stride = row_bytes(dtype_info(dtype), n);
  for (int64_t row = 0; row < n_rows; ++row) {
    encode_elements(dtype, src + row * n, n, dst + static_cast<size_t>(row) * stride);
  }
}

}  // namespace candor
