#include "model/hub/hub_packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>

#include "base/checked.h"
#include "base/half.h"
#include "formats/quote.h"
#include "model/hub/hub_parts.h"
#include "model/hub/hub_quantization.h"
#include "tensor/dtype.h"
#include "tensor/quant/fp8.h"
#include "tensor/quant/q4_0.h"
#include "tensor/quant/q5_0.h"
#include "tensor/quant/q8_0.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

constexpr std::string_view kPackedEnd = "_packed";
constexpr int64_t kInBlock = 32;

struct PackedMatrix {
  int bits = 4;
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t group = 0;
  int64_t row_words = 0;
  TensorView codes = {};
  TensorView scales = {};
  std::optional<TensorView> zeros = {};
  std::optional<TensorView> order = {};  // the group of each k, where they do not lie together

  int64_t n_groups() const { return n_in / group; }
  int middle() const { return 1 << (bits - 1); }
  int64_t group_of(int64_t k) const {
    if (!order) return k / group;
    int32_t g;
    std::memcpy(&g, order->data + 4 * static_cast<size_t>(k), sizeof g);
    return g;
  }
  int at_bit(const TensorView& tensor, int64_t word, int64_t place) const {
    uint32_t value;
    std::memcpy(&value, tensor.data + 4 * static_cast<size_t>(word), sizeof value);
    return static_cast<int>(value >> (static_cast<int>(place) * bits) & ((1u << bits) - 1u));
  }
  int code(int64_t output, int64_t k) const {
    const int64_t in_word = 32 / bits;
    return at_bit(codes, output * row_words + k / in_word, k % in_word);
  }
  int zero(int64_t output, int64_t g) const {
    const int64_t in_word = 32 / bits;
    return zeros ? at_bit(*zeros, output / in_word * n_groups() + g, output % in_word) : middle();
  }
  float scale(int64_t output, int64_t g) const {
    const auto at = static_cast<size_t>(output * n_groups() + g);
    if (scales.dtype == DType::kF32) {
      float value;
      std::memcpy(&value, scales.data + at * sizeof value, sizeof value);
      return value;
    }
    uint16_t value;
    std::memcpy(&value, scales.data + at * sizeof value, sizeof value);
    return scales.dtype == DType::kBF16 ? bf16_to_f32(value) : f16_to_f32(value);
  }
};

template <class Block>
Block block_of(const PackedMatrix& m, int64_t output, int64_t k) {
  const int64_t g = k / m.group;
  const int zero = m.zero(output, g);
  Block block{};
  block.d = f32_to_f16(m.scale(output, g));
  for (int i = 0; i < kInBlock; ++i) {
    const int value = m.code(output, k + i) - zero;
    if constexpr (std::is_same_v<Block, quant::BlockQ8_0>) {
      block.qs[i] = static_cast<int8_t>(value);
    } else {
      constexpr int kOffset = std::is_same_v<Block, quant::BlockQ5_0> ? 16 : 8;
      const int code = value + kOffset;
      block.qs[i % 16] = static_cast<uint8_t>(block.qs[i % 16] | ((code & 15) << (i / 16 * 4)));
      if constexpr (kOffset == 16) block.qh |= static_cast<uint32_t>(code >> 4 & 1) << i;
    }
  }
  return block;
}

template <class Block>
void fill(const PackedMatrix& m, std::byte* dst) {
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t k = 0; k < m.n_in; k += kInBlock, dst += sizeof(Block)) {
      const Block block = block_of<Block>(m, output, k);
      std::memcpy(dst, &block, sizeof block);
    }
  }
}

void fill_fp8(const PackedMatrix& m, std::byte* dst) {
  using quant::BlockFP8;
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t k = 0; k < m.n_in; k += BlockFP8::kElements, dst += sizeof(BlockFP8)) {
      const int64_t g = k / m.group;
      const int zero = m.zero(output, g);
      BlockFP8 block;
      block.d = m.scale(output, g);
      for (int i = 0; i < BlockFP8::kElements; ++i) {
        block.qs[i] = quant::f32_to_e4m3(static_cast<float>(m.code(output, k + i) - zero));
      }
      std::memcpy(dst, &block, sizeof block);
    }
  }
}

float value_of(const PackedMatrix& m, int64_t output, int64_t k) {
  const int64_t g = m.group_of(k);
  return m.scale(output, g) * static_cast<float>(m.code(output, k) - m.zero(output, g));
}

void fill_floats(const PackedMatrix& m, std::byte* dst) {
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t k = 0; k < m.n_in; ++k, dst += sizeof(float)) {
      const float value = value_of(m, output, k);
      std::memcpy(dst, &value, sizeof value);
    }
  }
}

// In the type of the scales.
void fill_halves(const PackedMatrix& m, std::byte* dst) {
  const bool is_bf16 = m.scales.dtype == DType::kBF16;
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t k = 0; k < m.n_in; ++k, dst += sizeof(uint16_t)) {
      const float value = value_of(m, output, k);
      const uint16_t half = is_bf16 ? f32_to_bf16(value) : f32_to_f16(value);
      std::memcpy(dst, &half, sizeof half);
    }
  }
}

bool are_scales_halves(const PackedMatrix& m) {
  if (m.scales.dtype == DType::kF16) return true;
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t g = 0; g < m.n_groups(); ++g) {
      const float value = m.scale(output, g);
      if (f16_to_f32(f32_to_f16(value)) != value) return false;
    }
  }
  return true;
}

bool are_zeros_in_the_middle(const PackedMatrix& m) {
  for (int64_t output = 0; m.zeros && output < m.n_out; ++output) {
    for (int64_t g = 0; g < m.n_groups(); ++g) {
      if (m.zero(output, g) != m.middle()) return false;
    }
  }
  return true;
}

// Of 8 bits: whether code - zero is one everywhere.
bool are_values_int8(const PackedMatrix& m) {
  if (!m.zeros) return true;
  for (int64_t output = 0; output < m.n_out; ++output) {
    for (int64_t k = 0; k < m.n_in; ++k) {
      const int value = m.code(output, k) - m.zero(output, k / m.group);
      if (value < INT8_MIN || value > INT8_MAX) return false;
    }
  }
  return true;
}

void choose_type(const PackedMatrix& m, JoinedWeight& joined) {
  const auto take = [&](DType dtype, void (*fill_as)(const PackedMatrix&, std::byte*)) {
    joined.dtype = dtype;
    joined.fill = [m, fill_as](std::byte* dst) { fill_as(m, dst); };
  };
  if (m.order)
    return m.scales.dtype == DType::kF32 ? take(DType::kF32, fill_floats) : take(m.scales.dtype, fill_halves);
  const bool is_in_blocks = m.n_in % kInBlock == 0 && m.group % kInBlock == 0;
  if (is_in_blocks && are_scales_halves(m)) {
    if (m.bits == 4 && are_zeros_in_the_middle(m)) return take(DType::kQ4_0, fill<quant::BlockQ4_0>);
    if (m.bits == 4) return take(DType::kQ5_0, fill<quant::BlockQ5_0>);
    if (are_values_int8(m)) return take(DType::kQ8_0, fill<quant::BlockQ8_0>);
  }
  const bool is_in_fp8_blocks = m.group % quant::BlockFP8::kElements == 0;
  if (m.bits == 4 && is_in_fp8_blocks) return take(DType::kFP8, fill_fp8);
  take(DType::kF32, fill_floats);
}

// The numbers in NAME_shape. REQUIRES: it is I64 or I32 of [2].
int64_t size_in(const TensorView& shape, size_t i) {
  if (shape.dtype == DType::kI64) {
    int64_t value;
    std::memcpy(&value, shape.data + i * sizeof value, sizeof value);
    return value;
  }
  int32_t value;
  std::memcpy(&value, shape.data + i * sizeof value, sizeof value);
  return value;
}

Result<void> read_sizes(const TensorView& codes, const TensorView& shape, PackedMatrix& m) {
  CANDOR_TRY(check_part(shape, shape.dtype == DType::kI64 || shape.dtype == DType::kI32, Shape{1, {2}}));
  if (codes.dtype != DType::kI32 || codes.shape.n_dims != 2) {
    return refused_tensor(codes, fmt::format("{} of shape {}; expected a matrix of I32", dtype_info(codes.dtype).name,
                                  to_string(codes.shape)));
  }
  m.n_out = codes.shape[0];
  m.row_words = codes.shape[1];
  m.n_in = size_in(shape, 1);
  const bool is_size = m.n_in >= 1 && m.n_in <= INT32_MAX && size_in(shape, 0) == m.n_out;
  for (const int bits : {4, 8}) {
    m.bits = bits;
    if (is_size && m.row_words == ceil_div(m.n_in * bits, int64_t{32})) return {};
  }
  return refused_tensor(shape, fmt::format("says [{}, {}], but {} of shape {} holds neither 4 nor 8 bits for each", size_in(shape, 0),
                                m.n_in, in_quotes(codes.name), to_string(codes.shape)));
}

// By the group of layers that fits: which one a layer belongs to, shapes and the presence of zero points say.
Result<void> read_scales(const HubWeights& weights, const TensorView& scales, PackedMatrix& m) {
  const bool is_float = is_float_type(scales.dtype);
  for (const HubScheme& scheme : weights.schemes) {
    m.group = scheme.group < 0 ? m.n_in : scheme.group;
    const bool fits =
        m.bits == scheme.bits && m.n_in % m.group == 0 && scheme.is_symmetric != m.zeros.has_value();
    if (fits && is_float && scales.shape == Shape{2, {m.n_out, m.n_groups()}}) {
      m.scales = scales;
      return {};
    }
  }
  return refused_tensor(scales, fmt::format("{} of shape {} of {} outputs of {} inputs with {} bits, {} zero points, fits none of "
                                 "config_groups",
                                 dtype_info(scales.dtype).name, to_string(scales.shape), m.n_out, m.n_in, m.bits,
                                 m.zeros ? "with" : "without"));
}

Result<HubScheme> read_scheme(const json& group, const std::string& place, std::string_view name) {
  const json format = member_of(group, "format");
  if (!format.is_null() && format != "pack-quantized") {
    return refused_quantization(name, place + ".format", format, "\"pack-quantized\"");
  }
  for (const char* key : {"input_activations", "output_activations"}) {
    const json seen = member_of(group, key);
    if (!seen.is_null()) return refused_quantization(name, fmt::format("{}.{}", place, key), seen, "null");
  }
  const json weights = member_of(group, "weights");
  CANDOR_TRY(check_quantization(weights, place + ".weights", {{"type", "int"}}, name));
  const json bits = member_of(weights, "num_bits");
  if (bits != 4 && bits != 8) return refused_quantization(name, place + ".weights.num_bits", bits, "4 or 8");
  const json order = member_of(weights, "actorder");
  if (!order.is_null() && order != "weight" && order != "static" && order != "group") {
    return refused_quantization(name, place + ".weights.actorder", order, "null, \"weight\", \"static\" or \"group\"");
  }
  const json symmetric = member_of(weights, "symmetric");
  if (!symmetric.is_boolean()) {
    return refused_quantization(name, place + ".weights.symmetric", symmetric, "true or false");
  }
  HubScheme scheme{.bits = bits.get<int>(), .is_symmetric = symmetric.get<bool>()};
  const json strategy = member_of(weights, "strategy");
  if (strategy == "channel") return scheme;
  if (strategy != "group") {
    return refused_quantization(name, place + ".weights.strategy", strategy, "\"group\" or \"channel\"");
  }
  const json size = member_of(weights, "group_size");
  if (!size.is_number_integer() || size < 1 || size > INT32_MAX) {
    return refused_quantization(name, place + ".weights.group_size", size, "how many inputs share a scale");
  }
  scheme.group = size.get<int64_t>();
  return scheme;
}

}  // namespace

Result<HubWeights> read_packed_groups(const json& groups, std::string_view name) {
  HubWeights weights{.form = HubWeightForm::kPacked};
  for (const auto& [key, group] : groups.items()) {
    CANDOR_ASSIGN(const HubScheme scheme,
                  read_scheme(group, fmt::format("config_groups.{}", key.substr(0, 40)), name));
    weights.schemes.push_back(scheme);
  }
  return weights;
}

Result<std::optional<JoinedWeight>> join_packed(const HubWeights& weights, const TensorView& tensor,
                                                const FindTensor& find) {
  if (!tensor.name.ends_with(kPackedEnd)) return std::optional<JoinedWeight>();
  const std::string stem(tensor.name.substr(0, tensor.name.size() - kPackedEnd.size()));
  PackedMatrix m{.codes = tensor};
  CANDOR_ASSIGN(const TensorView shape, part_of(tensor, stem + "_shape", find));
  CANDOR_TRY(read_sizes(tensor, shape, m));
  CANDOR_ASSIGN(const TensorView scales, part_of(tensor, stem + "_scale", find));
  if (const TensorView* zeros = find(stem + "_zero_point"); zeros != nullptr) m.zeros = *zeros;
  CANDOR_TRY(read_scales(weights, scales, m));
  JoinedWeight joined{.name = stem, .shape = {2, {m.n_out, m.n_in}}};
  joined.parts = {stem + "_scale", stem + "_shape"};
  if (m.zeros) {
    const Shape expected{2, {ceil_div(m.n_out * m.bits, int64_t{32}), m.n_groups()}};
    CANDOR_TRY(check_part(*m.zeros, m.zeros->dtype == DType::kI32, expected));
    joined.parts.push_back(stem + "_zero_point");
  }
  if (const TensorView* order = find(stem + "_g_idx"); order != nullptr) {
    CANDOR_ASSIGN(const bool is_plain, groups_lie_together(*order, m.n_in, m.group));
    if (!is_plain) m.order = *order;
    joined.parts.push_back(stem + "_g_idx");
  }
  choose_type(m, joined);
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
