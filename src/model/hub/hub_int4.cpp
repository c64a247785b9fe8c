#include "model/hub/hub_int4.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/half.h"
#include "formats/quote.h"
#include "model/hub/hub_parts.h"
#include "tensor/dtype.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q5_0.h"

namespace candor::model {
namespace {

using formats::in_quotes;

constexpr std::string_view kCodesEnd = ".qweight";
constexpr int64_t kBlock = 32;
constexpr int kMiddle = 8;  // the zero point that Q4_0 means

struct Int4Matrix {
  bool is_awq = false;
  bool has_lowered_zeros = false;
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t group = 0;
  TensorView codes = {};
  TensorView zeros = {};
  TensorView scales = {};

  static uint32_t word(const TensorView& tensor, int64_t i) {
    uint32_t value;
    std::memcpy(&value, tensor.data + 4 * static_cast<size_t>(i), sizeof value);
    return value;
  }
  int place_of(int64_t output) const {
    constexpr int kAwqPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const auto i = static_cast<int>(output % 8);
    return is_awq ? kAwqPlaces[i] : i;
  }
  int code(int64_t k, int64_t output) const {
    if (!is_awq) return static_cast<int>((word(codes, k / 8 * n_out + output) >> (4 * (k % 8))) & 15u);
    return static_cast<int>((word(codes, (k * n_out + output) / 8) >> (4 * place_of(output))) & 15u);
  }
  int zero(int64_t k, int64_t output) const {
    const uint32_t packed = word(zeros, (k / group * n_out + output) / 8);
    return static_cast<int>((packed >> (4 * place_of(output))) & 15u) + (has_lowered_zeros ? 1 : 0);
  }
  float scale(int64_t k, int64_t output) const {
    const auto unit = static_cast<size_t>(dtype_info(scales.dtype).block_bytes);
    float value = 0.0f;
    decode_elements(scales.dtype, scales.data + static_cast<size_t>(k / group * n_out + output) * unit, 1, &value);
    return value;
  }
};

// offset: what Block's value takes from a code.
template <class Block>
Block block_of(const Int4Matrix& m, int64_t k, int64_t output, int offset) {
  const int shift = offset - m.zero(k, output);
  Block block{};
  block.d = f32_to_f16(m.scale(k, output));
  uint32_t high_bits = 0;
  for (int i = 0; i < kBlock; ++i) {
    const int code = m.code(k + i, output) + shift;
    block.qs[i % 16] = static_cast<uint8_t>(block.qs[i % 16] | ((code & 15) << (i / 16 * 4)));
    high_bits |= static_cast<uint32_t>(code >> 4 & 1) << i;
  }
  if constexpr (std::is_same_v<Block, quant::BlockQ5_0>) block.qh = high_bits;
  return block;
}

// Outputs in groups whose words lie together in the file.
template <class Block>
void fill(const Int4Matrix& m, int offset, std::byte* dst) {
  constexpr int64_t kTogether = 16;
  const size_t row_bytes = static_cast<size_t>(m.n_in / kBlock) * sizeof(Block);
  for (int64_t first = 0; first < m.n_out; first += kTogether) {
    for (int64_t k = 0; k < m.n_in; k += kBlock) {
      for (int64_t output = first; output < std::min(first + kTogether, m.n_out); ++output) {
        const Block block = block_of<Block>(m, k, output, offset);
        std::memcpy(dst + static_cast<size_t>(output) * row_bytes + static_cast<size_t>(k / kBlock) * sizeof(Block),
                    &block, sizeof block);
      }
    }
  }
}

Result<void> check_parts(const Int4Matrix& m) {
  if (m.n_in % kBlock != 0 || m.group % kBlock != 0 || m.n_in % m.group != 0 || m.n_out % 8 != 0) {
    return refused_tensor(m.codes, fmt::format("{} outputs of {} inputs in groups of {}; expected groups of whole blocks of {}",
                                    m.n_out, m.n_in, m.group, kBlock));
  }
  CANDOR_TRY(check_part(m.zeros, m.zeros.dtype == DType::kI32, Shape{2, {m.n_in / m.group, m.n_out / 8}}));
  return check_part(m.scales, is_float_type(m.scales.dtype), Shape{2, {m.n_in / m.group, m.n_out}});
}

// Blocks hold f16.
Result<void> check_scales(const Int4Matrix& m) {
  if (m.scales.dtype == DType::kF16) return {};
  for (int64_t k = 0; k < m.n_in; k += m.group) {
    for (int64_t output = 0; output < m.n_out; ++output) {
      const float value = m.scale(k, output);
      if (f16_to_f32(f32_to_f16(value)) == value) continue;
      return refused_tensor(m.scales, fmt::format("the scale {:g} of output {} is no f16; a block of it would mean other numbers",
                                       value, output));
    }
  }
  return {};
}

Result<void> check_order(const Int4Matrix& m, const TensorView& order) {
  if (order.dtype != DType::kI32 || order.shape != Shape{1, {m.n_in}}) {
    return refused_tensor(order, fmt::format("{} of shape {}; expected I32 of [{}]", dtype_info(order.dtype).name,
                                  to_string(order.shape), m.n_in));
  }
  for (int64_t k = 0; k < m.n_in; ++k) {
    if (Int4Matrix::word(order, k) == static_cast<uint32_t>(k / m.group)) continue;
    return refused_tensor(order, fmt::format("input {} is of group {}, expected {}: groups by activation order (desc_act) are not "
                                  "read; get the model without it, in BF16 or as a GGUF file",
                                  k, Int4Matrix::word(order, k), k / m.group));
  }
  return {};
}

bool are_zeros_in_the_middle(const Int4Matrix& m) {
  for (int64_t k = 0; k < m.n_in; k += m.group) {
    for (int64_t output = 0; output < m.n_out; ++output) {
      if (m.zero(k, output) != kMiddle) return false;
    }
  }
  return true;
}

Result<Int4Matrix> int4_matrix(const HubWeights& weights, const TensorView& codes, const std::string& stem,
                               const FindTensor& find) {
  if (codes.shape.n_dims != 2 || codes.dtype != DType::kI32) {
    return refused_tensor(codes, fmt::format("{} of shape {}; expected a matrix of I32", dtype_info(codes.dtype).name,
                                  to_string(codes.shape)));
  }
  Int4Matrix m{.is_awq = weights.form == HubWeightForm::kAwq,
               .has_lowered_zeros = weights.has_lowered_zeros,
               .n_in = codes.shape[0],
               .n_out = codes.shape[1],
               .codes = codes};
  (m.is_awq ? m.n_out : m.n_in) *= 8;
  m.group = weights.group < 0 ? m.n_in : weights.group;
  CANDOR_ASSIGN(m.zeros, part_of(codes, stem + ".qzeros", find));
  CANDOR_ASSIGN(m.scales, part_of(codes, stem + ".scales", find));
  CANDOR_TRY(check_parts(m));
  CANDOR_TRY(check_scales(m));
  return m;
}

}  // namespace

Result<std::optional<JoinedWeight>> join_int4(const HubWeights& weights, const TensorView& tensor,
                                              const FindTensor& find) {
  if (!tensor.name.ends_with(kCodesEnd)) return std::optional<JoinedWeight>();
  const std::string stem(tensor.name.substr(0, tensor.name.size() - kCodesEnd.size()));
  CANDOR_ASSIGN(const Int4Matrix m, int4_matrix(weights, tensor, stem, find));
  JoinedWeight joined{.name = stem + ".weight", .shape = {2, {m.n_out, m.n_in}}};
  joined.parts = {stem + ".qzeros", stem + ".scales"};
  if (const TensorView* order = find(stem + ".g_idx"); order != nullptr) {
    CANDOR_TRY(check_order(m, *order));
    joined.parts.push_back(stem + ".g_idx");
  }
  if (are_zeros_in_the_middle(m)) {
    joined.dtype = DType::kQ4_0;
    joined.fill = [m](std::byte* dst) { fill<quant::BlockQ4_0>(m, kMiddle, dst); };
  } else {
    joined.dtype = DType::kQ5_0;
    joined.fill = [m](std::byte* dst) { fill<quant::BlockQ5_0>(m, 2 * kMiddle, dst); };
  }
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
