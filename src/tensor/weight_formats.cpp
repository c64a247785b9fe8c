#include <cstring>

#include "base/error.h"
#include "tensor/encode.h"
#include "tensor/quant/iq4.h"
#include "tensor/quant/mxfp4.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q4_k_fast.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_1.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"
#include "tensor/quant/scalar_formats.h"
#include "tensor/tensor_view.h"

namespace candor {
namespace {

template <class Block>
struct Type {};

// Calls visit(Type<Block>{}) for the block struct of a weight dtype.
template <class Visit>
void with_block(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(Type<quant::BlockF32>{});
    case DType::kF16:
      return visit(Type<quant::BlockF16>{});
    case DType::kBF16:
      return visit(Type<quant::BlockBF16>{});
    case DType::kQ4_0:
      return visit(Type<quant::BlockQ4_0>{});
    case DType::kQ4_1:
      return visit(Type<quant::BlockQ4_1>{});
    case DType::kQ5_0:
      return visit(Type<quant::BlockQ5_0>{});
    case DType::kQ5_1:
      return visit(Type<quant::BlockQ5_1>{});
    case DType::kQ8_0:
      return visit(Type<quant::BlockQ8_0>{});
    case DType::kQ2_K:
      return visit(Type<quant::BlockQ2_K>{});
    case DType::kQ3_K:
      return visit(Type<quant::BlockQ3_K>{});
    case DType::kQ4_K:
      return visit(Type<quant::BlockQ4_K>{});
    case DType::kQ4_KFast:
      return visit(Type<quant::BlockQ4_KFast>{});
    case DType::kQ5_K:
      return visit(Type<quant::BlockQ5_K>{});
    case DType::kQ6_K:
      return visit(Type<quant::BlockQ6_K>{});
    case DType::kIQ4_NL:
      return visit(Type<quant::BlockIQ4_NL>{});
    case DType::kIQ4_XS:
      return visit(Type<quant::BlockIQ4_XS>{});
    case DType::kMXFP4:
      return visit(Type<quant::BlockMXFP4>{});
    default:
      CANDOR_CHECK(dtype_info(dtype).is_weight);
  }
}

}  // namespace

void decode_elements(DType dtype, const std::byte* src, int64_t n, float* dst) {
  with_block(dtype, [=]<class Block>(Type<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    for (int64_t i = 0; i < n / Block::kElements; ++i) {
      Block block;
      std::memcpy(&block, src + static_cast<size_t>(i) * sizeof(Block), sizeof(Block));
      quant::decode_block(block, dst + i * Block::kElements);
    }
  });
}

void encode_elements(DType dtype, const float* src, int64_t n, std::byte* dst) {
  with_block(dtype, [=]<class Block>(Type<Block>) {
    CANDOR_DCHECK(n % Block::kElements == 0);
    for (int64_t i = 0; i < n / Block::kElements; ++i) {
      Block block;
      quant::encode_block(src + i * Block::kElements, block);
      std::memcpy(dst + static_cast<size_t>(i) * sizeof(Block), &block, sizeof(Block));
    }
  });
}

}  // namespace candor
