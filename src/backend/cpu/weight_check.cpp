#include "backend/cpu/weight_check.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include "tensor/quant/iq4.h"
#include "tensor/quant/q2_k.h"
#include "tensor/quant/q3_k.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q4_1.h"
#include "tensor/quant/q4_k.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q5_1.h"
#include "tensor/quant/q5_k.h"
#include "tensor/quant/q6_k.h"
#include "tensor/quant/q8_0.h"

namespace candor::backend::cpu {
namespace {

constexpr int32_t kNone = -1;

// Where a block keeps its f16 scales. Formats without any (MXFP4: every exponent is a number) are not listed.
struct ScaleFields {
  DType dtype;
  int32_t first;
  int32_t second = kNone;
};
constexpr std::array<ScaleFields, 13> kScaleFields{{
    {DType::kQ4_0, offsetof(quant::BlockQ4_0, d)},
    {DType::kQ4_1, offsetof(quant::BlockQ4_1, d), offsetof(quant::BlockQ4_1, m)},
    {DType::kQ5_0, offsetof(quant::BlockQ5_0, d)},
    {DType::kQ5_1, offsetof(quant::BlockQ5_1, d), offsetof(quant::BlockQ5_1, m)},
    {DType::kQ8_0, offsetof(quant::BlockQ8_0, d)},
    {DType::kQ2_K, offsetof(quant::BlockQ2_K, d), offsetof(quant::BlockQ2_K, dmin)},
    {DType::kQ3_K, offsetof(quant::BlockQ3_K, d)},
    {DType::kQ4_K, offsetof(quant::BlockQ4_K, d), offsetof(quant::BlockQ4_K, dmin)},
    {DType::kQ4_KFast, offsetof(quant::BlockQ4_K, d), offsetof(quant::BlockQ4_K, dmin)},
    {DType::kQ5_K, offsetof(quant::BlockQ5_K, d), offsetof(quant::BlockQ5_K, dmin)},
    {DType::kQ6_K, offsetof(quant::BlockQ6_K, d)},
    {DType::kIQ4_NL, offsetof(quant::BlockIQ4_NL, d)},
    {DType::kIQ4_XS, offsetof(quant::BlockIQ4_XS, d)},
}};

// The exponent bits of each float type: all set in NaN and infinity.
constexpr uint32_t kF32Exponent = 0x7f800000u;
constexpr uint16_t kF16Exponent = 0x7c00u;
constexpr uint16_t kBf16Exponent = 0x7f80u;

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
  uint16_t word = 0;
  std::memcpy(&word, at, sizeof(word));
  return (word & kF16Exponent) == kF16Exponent;
}

bool any_bad_scale(const std::byte* row, int64_t n_blocks, size_t block_bytes, const ScaleFields& fields) {
  bool bad = false;
  for (int64_t i = 0; i < n_blocks; ++i) {
    const std::byte* block = row + static_cast<size_t>(i) * block_bytes;
    bad |= is_bad_f16(block + fields.first);
    if (fields.second != kNone) bad |= is_bad_f16(block + fields.second);
  }
  return bad;
}

bool is_bad_row(const TensorView& tensor, int64_t row) {
  const std::byte* src = tensor.row(row);
  const int64_t n = tensor.shape.row_elements();
  if (tensor.dtype == DType::kF32) return any_full_exponent<uint32_t>(src, n, kF32Exponent);
  if (tensor.dtype == DType::kF16) return any_full_exponent<uint16_t>(src, n, kF16Exponent);
  if (tensor.dtype == DType::kBF16) return any_full_exponent<uint16_t>(src, n, kBf16Exponent);
  const DTypeInfo& info = dtype_info(tensor.dtype);
  for (const ScaleFields& fields : kScaleFields) {
    if (fields.dtype != tensor.dtype) continue;
    return any_bad_scale(src, n / info.block_elements, static_cast<size_t>(info.block_bytes), fields);
  }
  return false;
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
  const char* what = info.block_elements == 1 ? "a value" : "a block's scale";
  return {ErrorKind::kInvalidInput, "tensor \"" + std::string(tensor.name) + "\" (" + std::string(info.name) +
                                        "): " + what + " in row " + std::to_string(row) +
                                        " is NaN or infinite, expected finite numbers; the file is damaged, fetch it "
                                        "again"};
}

}  // namespace candor::backend::cpu
