#include "model/hub/hub_gptq.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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
#include "tensor/quant/q8_0.h"

namespace candor::model {
namespace {

using formats::in_quotes;

constexpr std::string_view kCodesEnd = ".qweight";
constexpr int64_t kBlock = 32;

struct GroupedMatrix {
  int bits = 4;
  bool is_awq = false;
  bool has_lowered_zeros = false;
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t group = 0;
  TensorView codes = {};
  TensorView zeros = {};
  TensorView scales = {};
  std::optional<TensorView> order = {};  // the group of each k, where they do not lie together

  static uint32_t word(const TensorView& tensor, int64_t i) {
    uint32_t value;
    std::memcpy(&value, tensor.data + 4 * static_cast<size_t>(i), sizeof value);
    return value;
  }
  // Number i of those that lie in words first, first + step, ...
  int number(const TensorView& tensor, int64_t i, int64_t first, int64_t step) const {
    const int64_t at = i * bits;
    const int64_t in_word = at % 32;
    uint64_t pair = word(tensor, first + at / 32 * step);
    if (in_word + bits > 32) pair |= uint64_t{word(tensor, first + (at / 32 + 1) * step)} << 32;
    return static_cast<int>(pair >> in_word & ((1u << bits) - 1u));
  }
  static int64_t awq_place(int64_t output) {
    constexpr int kPlaces[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return output / 8 * 8 + kPlaces[output % 8];
  }
  int code(int64_t k, int64_t output) const {
    if (is_awq) return number(codes, awq_place(output), k * n_out / 8, 1);
    return number(codes, k, output, n_out);
  }
  int64_t group_of(int64_t k) const { return order ? static_cast<int64_t>(word(*order, k)) : k / group; }
  int64_t n_groups() const { return n_in / group; }
  int zero(int64_t g, int64_t output) const {
    const int stored = number(zeros, is_awq ? awq_place(output) : output, g * n_out * bits / 32, 1);
    return stored + (has_lowered_zeros ? 1 : 0);
  }
  float scale(int64_t g, int64_t output) const {
    const auto unit = static_cast<size_t>(dtype_info(scales.dtype).block_bytes);
    float value = 0.0f;
    decode_elements(scales.dtype, scales.data + static_cast<size_t>(g * n_out + output) * unit, 1, &value);
    return value;
  }
};

template <class Block>
Block block_of(const GroupedMatrix& m, int64_t k, int64_t output) {
  constexpr int kOffset = std::is_same_v<Block, quant::BlockQ5_0>   ? 16
                          : std::is_same_v<Block, quant::BlockQ4_0> ? 8
                                                                    : 0;
  const int64_t g = k / m.group;
  const int shift = kOffset - m.zero(g, output);
  Block block{};
  block.d = f32_to_f16(m.scale(g, output));
  for (int i = 0; i < kBlock; ++i) {
    const int code = m.code(k + i, output) + shift;
    if constexpr (kOffset == 0) {
      block.qs[i] = static_cast<int8_t>(code);
    } else {
      block.qs[i % 16] = static_cast<uint8_t>(block.qs[i % 16] | ((code & 15) << (i / 16 * 4)));
      if constexpr (kOffset == 16) block.qh |= static_cast<uint32_t>(code >> 4 & 1) << i;
    }
  }
  return block;
}

// Outputs in groups whose words lie together in the file.
template <class Write>
void for_pieces(const GroupedMatrix& m, int64_t step, Write&& write) {
  constexpr int64_t kTogether = 16;
  for (int64_t first = 0; first < m.n_out; first += kTogether) {
    for (int64_t k = 0; k < m.n_in; k += step) {
      for (int64_t output = first; output < std::min(first + kTogether, m.n_out); ++output) write(k, output);
    }
  }
}

template <class Block>
void fill(const GroupedMatrix& m, std::byte* dst) {
  for_pieces(m, kBlock, [&](int64_t k, int64_t output) {
    const Block block = block_of<Block>(m, k, output);
    std::memcpy(dst + static_cast<size_t>((output * m.n_in + k) / kBlock) * sizeof(Block), &block, sizeof block);
  });
}

float value_of(const GroupedMatrix& m, int64_t k, int64_t output) {
  const int64_t g = m.group_of(k);
  return m.scale(g, output) * static_cast<float>(m.code(k, output) - m.zero(g, output));
}

void fill_floats(const GroupedMatrix& m, std::byte* dst) {
  for_pieces(m, 1, [&](int64_t k, int64_t output) {
    const float value = value_of(m, k, output);
    std::memcpy(dst + static_cast<size_t>(output * m.n_in + k) * sizeof value, &value, sizeof value);
  });
}

void fill_halves(const GroupedMatrix& m, std::byte* dst) {
  for_pieces(m, 1, [&](int64_t k, int64_t output) {
    const uint16_t value = f32_to_f16(value_of(m, k, output));
    std::memcpy(dst + static_cast<size_t>(output * m.n_in + k) * sizeof value, &value, sizeof value);
  });
}

Result<void> check_parts(const GroupedMatrix& m) {
  if (m.n_in % kBlock != 0 || m.group % kBlock != 0 || m.n_in % m.group != 0 || m.n_out * m.bits % 32 != 0) {
    return refused_tensor(
        m.codes, fmt::format("{} outputs of {} inputs in groups of {}; expected groups of whole blocks of {}", m.n_out,
                             m.n_in, m.group, kBlock));
  }
  CANDOR_TRY(check_part(m.zeros, m.zeros.dtype == DType::kI32, Shape{2, {m.n_groups(), m.n_out * m.bits / 32}}));
  return check_part(m.scales, is_float_type(m.scales.dtype), Shape{2, {m.n_groups(), m.n_out}});
}

// is_it(g, output) of every scale and zero point.
template <class IsIt>
bool all_groups(const GroupedMatrix& m, IsIt&& is_it) {
  for (int64_t g = 0; g < m.n_groups(); ++g) {
    for (int64_t output = 0; output < m.n_out; ++output) {
      if (!is_it(g, output)) return false;
    }
  }
  return true;
}

// Blocks hold f16.
Result<void> check_scales(const GroupedMatrix& m) {
  if (m.scales.dtype == DType::kF16) return {};
  Result<void> checked;
  all_groups(m, [&](int64_t g, int64_t output) {
    const float value = m.scale(g, output);
    if (f16_to_f32(f32_to_f16(value)) == value) return true;
    checked = refused_tensor(
        m.scales,
        fmt::format("the scale {:g} of output {} is no f16; a block of it would mean other numbers", value, output));
    return false;
  });
  return checked;
}

// Of 8 bits: whether code - zero is one everywhere.
bool are_values_int8(const GroupedMatrix& m) {
  if (all_groups(m, [&](int64_t g, int64_t output) { return m.zero(g, output) == 128; })) return true;
  for (int64_t k = 0; k < m.n_in; ++k) {
    for (int64_t output = 0; output < m.n_out; ++output) {
      const int value = m.code(k, output) - m.zero(k / m.group, output);
      if (value < INT8_MIN || value > INT8_MAX) return false;
    }
  }
  return true;
}

bool are_values_halves(const GroupedMatrix& m) {
  constexpr float kMost = 65504.0f;
  const float most = kMost / static_cast<float>(1 << m.bits);
  return all_groups(m, [&](int64_t g, int64_t output) { return std::fabs(m.scale(g, output)) < most; });
}

void choose_type(const GroupedMatrix& m, JoinedWeight& joined) {
  const auto take = [&](DType dtype, void (*fill_as)(const GroupedMatrix&, std::byte*)) {
    joined.dtype = dtype;
    joined.fill = [m, fill_as](std::byte* dst) { fill_as(m, dst); };
  };
  if (m.order) return are_values_halves(m) ? take(DType::kF16, fill_halves) : take(DType::kF32, fill_floats);
  if (m.bits == 8)
    return are_values_int8(m) ? take(DType::kQ8_0, fill<quant::BlockQ8_0>) : take(DType::kF32, fill_floats);
  const bool fits_q4 = m.bits < 4 || all_groups(m, [&](int64_t g, int64_t output) { return m.zero(g, output) == 8; });
  fits_q4 ? take(DType::kQ4_0, fill<quant::BlockQ4_0>) : take(DType::kQ5_0, fill<quant::BlockQ5_0>);
}

Result<GroupedMatrix> grouped_matrix(const HubWeights& weights, const TensorView& codes, const std::string& stem,
                                     const FindTensor& find) {
  if (codes.shape.n_dims != 2 || codes.dtype != DType::kI32) {
    return refused_tensor(codes, fmt::format("{} of shape {}; expected a matrix of I32", dtype_info(codes.dtype).name,
                                             to_string(codes.shape)));
  }
  GroupedMatrix m{.bits = weights.bits,
                  .is_awq = weights.form == HubWeightForm::kAwq,
                  .has_lowered_zeros = weights.has_lowered_zeros,
                  .n_in = codes.shape[0],
                  .n_out = codes.shape[1],
                  .codes = codes};
  int64_t& packed = m.is_awq ? m.n_out : m.n_in;
  if (packed * 32 % m.bits != 0) {
    return refused_tensor(
        codes, fmt::format("shape {} holds no whole number of codes of {} bits", to_string(codes.shape), m.bits));
  }
  packed = packed * 32 / m.bits;
  m.group = weights.group < 0 ? m.n_in : weights.group;
  CANDOR_ASSIGN(m.zeros, part_of(codes, stem + ".qzeros", find));
  CANDOR_ASSIGN(m.scales, part_of(codes, stem + ".scales", find));
  CANDOR_TRY(check_parts(m));
  CANDOR_TRY(check_scales(m));
  return m;
}

}  // namespace

Result<std::optional<JoinedWeight>> join_gptq(const HubWeights& weights, const TensorView& tensor,
                                              const FindTensor& find) {
  if (!tensor.name.ends_with(kCodesEnd)) return std::optional<JoinedWeight>();
  const std::string stem(tensor.name.substr(0, tensor.name.size() - kCodesEnd.size()));
  CANDOR_ASSIGN(GroupedMatrix m, grouped_matrix(weights, tensor, stem, find));
  JoinedWeight joined{.name = stem + ".weight", .shape = {2, {m.n_out, m.n_in}}};
  joined.parts = {stem + ".qzeros", stem + ".scales"};
  if (const TensorView* order = find(stem + ".g_idx"); order != nullptr) {
    CANDOR_ASSIGN(const bool is_plain, groups_lie_together(*order, m.n_in, m.group));
    if (!is_plain) m.order = *order;
    joined.parts.push_back(stem + ".g_idx");
  }
  choose_type(m, joined);
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
