#include "model/hub/hub_hqq.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "base/checked.h"
#include "base/half.h"
#include "formats/quote.h"
#include "model/hub/hub_parts.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

constexpr std::string_view kHqqCodesEnd = ".W_q";
// What the library saves beside a matrix.
constexpr std::array kParts = {"scale",
                               "zero",
                               "shape",
                               "nbits",
                               "group_size",
                               "axis",
                               "packing",
                               "unpack_view_dtype",
                               "view_as_float",
                               "quant_scale",
                               "quant_zero",
                               "compute_dtype",
                               "offload_meta",
                               "encoded_state_dict",
                               "stores_quant_config",
                               "channel_wise",
                               "optimize",
                               "round_zero"};

struct HqqMatrix {
  int bits = 4;
  int in_word = 2;        // codes
  bool is_by_row = true;  // axis 1
  int64_t n_out = 0, n_in = 0, group = 0;
  TensorView codes{}, scales{}, zeros{};

  int64_t n_groups() const { return n_out * n_in / group; }
  int64_t n_rows() const { return is_by_row ? n_groups() : group; }
  int64_t n_cols() const { return is_by_row ? group : n_groups(); }
  uint32_t code(int64_t row, int64_t col) const {
    const int64_t step = codes.shape[0];
    const auto at = static_cast<size_t>(row % step * n_cols() + col);
    uint32_t word = 0;
    if (bits == 3) {
      std::memcpy(&word, codes.data + 4 * at, sizeof word);
    } else {
      word = static_cast<uint32_t>(codes.data[at]);
    }
    const auto place = static_cast<int>(row / step);
    return word >> (bits * (in_word - 1 - place)) & ((1u << bits) - 1u);
  }
};

float rounded(float value, DType dtype) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(value));
  return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value)) : value;
}

void fill(const HqqMatrix& m, std::byte* dst) {
  const DType dtype = m.scales.dtype;
  const auto unit = static_cast<size_t>(dtype_info(dtype).block_bytes);
  const auto number = [unit, dtype](const TensorView& tensor, int64_t i) {
    float value = 0.0f;
    decode_elements(dtype, tensor.data + static_cast<size_t>(i) * unit, 1, &value);
    return value;
  };
  for (int64_t row = 0; row < m.n_rows(); ++row) {
    for (int64_t col = 0; col < m.n_cols(); ++col, dst += unit) {
      const int64_t g = m.is_by_row ? row : col;
      const float distance = rounded(static_cast<float>(m.code(row, col)) - number(m.zeros, g), dtype);
      const float value = rounded(distance * number(m.scales, g), dtype);
      if (dtype == DType::kF32) {
        std::memcpy(dst, &value, unit);
        continue;
      }
      const uint16_t half = dtype == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value);
      std::memcpy(dst, &half, unit);
    }
  }
}

Result<int64_t> number_in(const TensorView& tensor, int64_t i = 0) {
  const bool is_long = tensor.dtype == DType::kI64;
  const size_t unit = is_long ? 8 : 4;
  const bool fits = (is_long || tensor.dtype == DType::kI32) && tensor.n_bytes >= (static_cast<size_t>(i) + 1) * unit;
  if (!fits) return refused_tensor(tensor, "no number, I32 or I64");
  int64_t value = 0;
  if (is_long) {
    std::memcpy(&value, tensor.data + static_cast<size_t>(i) * unit, unit);
  } else {
    int32_t narrow = 0;
    std::memcpy(&narrow, tensor.data + static_cast<size_t>(i) * unit, unit);
    value = narrow;
  }
  if (value < 0 || value > INT32_MAX) return refused_tensor(tensor, fmt::format("it is {}", value));
  return value;
}

Result<void> read_sizes(const TensorView& codes, const std::string& stem, const FindTensor& find, HqqMatrix& m) {
  const auto number_of = [&](const char* name, int64_t i = 0) -> Result<int64_t> {
    CANDOR_ASSIGN(const TensorView part, part_of(codes, stem + name, find));
    return number_in(part, i);
  };
  CANDOR_ASSIGN(const int64_t bits, number_of(".nbits"));
  CANDOR_ASSIGN(m.group, number_of(".group_size"));
  CANDOR_ASSIGN(const int64_t axis, number_of(".axis"));
  CANDOR_ASSIGN(m.n_out, number_of(".shape"));
  CANDOR_ASSIGN(m.n_in, number_of(".shape", 1));
  const bool is_known = bits == 1 || bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (!is_known || axis > 1 || m.group < 1 || m.n_out < 1 || m.n_in < 1 || m.n_out * m.n_in % m.group != 0) {
    return refused_tensor(
        codes, fmt::format("{} bits, axis {}, groups of {}, shape [{}, {}]; expected 1, 2, 3, 4 or 8 bits, axis 0 "
                           "or 1, and whole groups",
                           bits, axis, m.group, m.n_out, m.n_in));
  }
  m.bits = static_cast<int>(bits);
  m.in_word = m.bits == 3 ? 10 : 8 / m.bits;
  m.is_by_row = axis == 1;
  return {};
}

}  // namespace

Result<std::optional<JoinedWeight>> join_hqq(const TensorView& tensor, const FindTensor& find) {
  if (!tensor.name.ends_with(kHqqCodesEnd)) return std::optional<JoinedWeight>();
  const std::string stem(tensor.name.substr(0, tensor.name.size() - kHqqCodesEnd.size()));
  for (const char* flag : {".quant_scale", ".quant_zero", ".view_as_float"}) {
    const TensorView* part = find(stem + flag);
    const bool is_set = part != nullptr && part->n_bytes > 0 && part->data[0] != std::byte{0};
    if (is_set)
      return refused_tensor(*part, "scales and zero points that are quantised too, and codes as floats, are not read");
  }
  HqqMatrix m{.codes = tensor};
  CANDOR_TRY(read_sizes(tensor, stem, find, m));
  CANDOR_ASSIGN(m.scales, part_of(tensor, stem + ".scale", find));
  CANDOR_ASSIGN(m.zeros, part_of(tensor, stem + ".zero", find));
  CANDOR_TRY(check_part(tensor, tensor.dtype == (m.bits == 3 ? DType::kI32 : DType::kI8),
                        Shape{2, {ceil_div(m.n_rows(), int64_t{m.in_word}), m.n_cols()}}));
  const Shape groups{2, {m.is_by_row ? m.n_groups() : 1, m.is_by_row ? 1 : m.n_groups()}};
  CANDOR_TRY(check_part(m.scales, is_float_type(m.scales.dtype), groups));
  CANDOR_TRY(check_part(m.zeros, m.zeros.dtype == m.scales.dtype, groups));
  JoinedWeight joined{.name = stem + ".weight", .dtype = m.scales.dtype, .shape = {2, {m.n_out, m.n_in}}};
  for (const char* part : kParts) joined.parts.push_back(fmt::format("{}.{}", stem, part));
  joined.fill = [m](std::byte* dst) { fill(m, dst); };
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
