#include "backend/cpu/weight_check.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "tensor/dtype.h"
#include "tensor/quant/block_format.h"
#include "tensor/quant/scalar_formats.h"
#include "tensor/weight_formats.h"

namespace candor::backend::cpu {
namespace {

// In NaN and infinity every bit of the exponent is set.
template <class Word>
bool any_full_exponent(const std::byte* src, int64_t n, Word exponent) {
  Word found = 0;
  for (int64_t i = 0; i < n; ++i) {
    Word word = 0;
    std::memcpy(&word, src + static_cast<size_t>(i) * sizeof(Word), sizeof(Word));
    found = static_cast<Word>(found | static_cast<Word>((word & exponent) == exponent));
  }
  return found != 0;
}

bool is_bad_f16(const std::byte* at) {
  return any_full_exponent<uint16_t>(at, 1, quant::BlockF16::kExponentBits);
}

template <class Block>
bool any_bad_scale(const std::byte* row, int64_t n_blocks) {
  constexpr quant::ScaleFields kFields = Block::scale_fields();
  bool bad = false;
  for (int64_t i = 0; i < n_blocks; ++i) {
    const std::byte* block = row + static_cast<size_t>(i) * sizeof(Block);
    if constexpr (kFields.scale >= 0) bad |= is_bad_f16(block + kFields.scale);
    if constexpr (kFields.min >= 0) bad |= is_bad_f16(block + kFields.min);
  }
  return bad;
}

template <class Block>
bool any_unsound(const std::byte* row, int64_t n_blocks) {
  bool bad = false;
  for (int64_t i = 0; i < n_blocks; ++i) {
    Block block;
    std::memcpy(&block, row + static_cast<size_t>(i) * sizeof(Block), sizeof(Block));
    bad |= !is_sound(block);
  }
  return bad;
}

bool is_bad_row(const TensorView& tensor, int64_t row) {
  const std::byte* src = tensor.row(row);
  const int64_t n = tensor.shape.row_elements();
  bool bad = false;
  with_block(tensor.dtype, [&]<class Block>(BlockType<Block>) {
    if constexpr (quant::IsFloat<Block>) {
      bad = any_full_exponent(src, n, Block::kExponentBits);
    } else if constexpr (quant::ScaledRow<Block>) {
      bad = any_full_exponent(src, 1, quant::BlockF32::kExponentBits);
    } else if constexpr (quant::CheckedBlock<Block>) {
      bad = any_unsound<Block>(src, n / Block::kElements);
    } else {
      bad = any_bad_scale<Block>(src, n / Block::kElements);
    }
  });
  return bad;
}

}  // namespace

std::optional<int64_t> first_bad_row(const TensorView& tensor, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    if (is_bad_row(tensor, row)) return row;
  }
  return std::nullopt;
}

Error describe_bad_row(const TensorView& tensor, int64_t row) {
  const DTypeInfo& info = dtype_info(tensor.dtype);
  bool is_float_block = false;
  with_block(tensor.dtype, [&]<class Block>(BlockType<Block>) { is_float_block = quant::IsFloatBlock<Block>; });
  const std::string what = is_float_block             ? "a value or a block's scale"
                           : info.block_elements == 1 ? "a value"
                                                      : "a block's scale";
  const std::string why = is_float_block ? " is NaN, infinite or beyond 2^100 or 2^-100" : " is NaN or infinite";
  return {ErrorKind::kInvalidInput, "tensor \"" + std::string(tensor.name) + "\" (" + std::string(info.name) +
                                        "): " + what + " in row " + std::to_string(row) + why +
                                        ", expected finite numbers; the file is damaged, fetch it again"};
}

}  // namespace candor::backend::cpu
