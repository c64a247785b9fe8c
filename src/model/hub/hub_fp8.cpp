#include "model/hub/hub_fp8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/checked.h"
#include "formats/quote.h"
#include "model/hub/hub_quantization.h"
#include "tensor/dtype.h"
#include "tensor/quant/fp8.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;
using quant::BlockFP8;

// Of activations and of K/V, where they are known beforehand.
constexpr std::string_view kInputScales[] = {"activation_scale", "input_scale", "k_scale", "v_scale"};

struct Fp8Matrix {
  int64_t n_in = 0;
  int64_t n_out = 0;
  int64_t rows = 1;     // that share a scale
  int64_t columns = 1;  // too
  TensorView codes = {};
  TensorView scales = {};

  float scale(int64_t row, int64_t column) const {
    const auto unit = static_cast<size_t>(dtype_info(scales.dtype).block_bytes);
    const int64_t at = row / rows * ceil_div(n_in, columns) + column / columns;
    float value = 0.0f;
    decode_elements(scales.dtype, scales.data + static_cast<size_t>(at) * unit, 1, &value);
    return value;
  }
  const std::byte* codes_of(int64_t row, int64_t column) const {
    return codes.data + static_cast<size_t>(row * n_in + column);
  }
  bool has_blocks() const {
    return n_in % BlockFP8::kElements == 0 && (columns >= n_in || columns % BlockFP8::kElements == 0);
  }
};

void fill_blocks(const Fp8Matrix& m, std::byte* dst) {
  for (int64_t row = 0; row < m.n_out; ++row) {
    for (int64_t k = 0; k < m.n_in; k += BlockFP8::kElements, dst += sizeof(BlockFP8)) {
      BlockFP8 block;
      block.d = m.scale(row, k);
      std::memcpy(block.qs, m.codes_of(row, k), sizeof block.qs);
      std::memcpy(dst, &block, sizeof block);
    }
  }
}

void fill_floats(const Fp8Matrix& m, std::byte* dst) {
  for (int64_t row = 0; row < m.n_out; ++row) {
    float scale = 0.0f;
    for (int64_t k = 0; k < m.n_in; ++k, dst += sizeof(float)) {
      if (k % m.columns == 0) scale = m.scale(row, k);
      const float value = scale * quant::e4m3_to_f32(static_cast<uint8_t>(*m.codes_of(row, k)));
      std::memcpy(dst, &value, sizeof value);
    }
  }
}

Error misfit(const TensorView& scales, const Fp8Matrix& m, const std::string& expected) {
  return fail(ErrorKind::kInvalidInput,
              fmt::format("tensor {}: {} of shape {} for the codes {} of {}; expected F32, BF16 or F16 of {}",
                          in_quotes(scales.name), dtype_info(scales.dtype).name, to_string(scales.shape),
                          to_string(m.codes.shape), in_quotes(m.codes.name), expected));
}

// How many rows and columns share a scale.
Result<void> place_scales(const HubWeights& weights, const TensorView& scales, Fp8Matrix& m) {
  const bool is_float = scales.dtype == DType::kF32 || scales.dtype == DType::kBF16 || scales.dtype == DType::kF16;
  m.scales = scales;
  if (weights.block_rows > 0) {
    m.rows = weights.block_rows;
    m.columns = weights.block_columns;
    const Shape grid{2, {ceil_div(m.n_out, m.rows), ceil_div(m.n_in, m.columns)}};
    if (is_float && scales.shape == grid) return {};
    return misfit(scales, m,
                  fmt::format("{}, a scale for each block of {} x {}", to_string(grid), m.rows, m.columns));
  }
  m.rows = scales.shape.n_elements() == 1 ? m.n_out : 1;
  m.columns = m.n_in;
  const bool is_column = scales.shape.n_elements() == m.n_out && scales.shape[0] == m.n_out;
  if (is_float && (is_column || m.rows == m.n_out)) return {};
  return misfit(scales, m, fmt::format("one number, or of [{}, 1]", m.n_out));
}

Result<Fp8Matrix> fp8_matrix(const HubWeights& weights, const TensorView& codes, const std::string& scale_name,
                             const FindTensor& find) {
  if (codes.shape.n_dims != 2) {
    return fail(ErrorKind::kUnsupported, fmt::format("tensor {}: F8_E4M3 of shape {}; expected a matrix",
                                                     in_quotes(codes.name), to_string(codes.shape)));
  }
  const TensorView* scales = find(scale_name);
  if (scales == nullptr) {
    return fail(ErrorKind::kInvalidInput, fmt::format("tensor {}: {} is missing, which holds its scales",
                                                      in_quotes(codes.name), in_quotes(scale_name)));
  }
  Fp8Matrix m{.n_in = codes.shape[1], .n_out = codes.shape[0], .codes = codes};
  CANDOR_TRY(place_scales(weights, *scales, m));
  return m;
}

// sizes: [rows, columns], where it stands in the file.
Result<void> read_block(const json& sizes, const std::string& place, std::string_view name, HubWeights& weights) {
  const auto is_size = [](const json& size) { return size.is_number_integer() && size >= 1 && size <= INT32_MAX; };
  if (!sizes.is_array() || sizes.size() != 2 || !is_size(sizes[0]) || !is_size(sizes[1])) {
    return refused_quantization(name, place, sizes, "two sizes, as [128, 128]");
  }
  weights.block_rows = sizes[0].get<int64_t>();
  weights.block_columns = sizes[1].get<int64_t>();
  return {};
}

Result<HubWeights> read_group(const json& group, const std::string& place, std::string_view name) {
  HubWeights read{.form = HubWeightForm::kFp8};
  const json weights = member_of(group, "weights");
  const std::string at = place + ".weights";
  CANDOR_TRY(check_quantization(weights, at, {{"type", "float"}, {"num_bits", 8}, {"symmetric", true}}, name));
  const json format = member_of(group, "format");
  if (!format.is_null() && format != "float-quantized") {
    return refused_quantization(name, place + ".format", format, "\"float-quantized\"");
  }
  const json output = member_of(group, "output_activations");
  if (!output.is_null()) return refused_quantization(name, place + ".output_activations", output, "null");
  const json input = member_of(group, "input_activations");
  if (!input.is_null()) {
    CANDOR_TRY(check_quantization(input, place + ".input_activations", {{"type", "float"}, {"num_bits", 8}}, name));
  }
  const json strategy = member_of(weights, "strategy");
  if (strategy == "block") {
    CANDOR_TRY(read_block(member_of(weights, "block_structure"), at + ".block_structure", name, read));
  } else if (strategy != "channel" && strategy != "tensor") {
    return refused_quantization(name, at + ".strategy", strategy, "\"block\", \"channel\" or \"tensor\"");
  }
  return read;
}

}  // namespace

Result<HubWeights> read_fp8(const json& quantization, std::string_view name) {
  HubWeights weights{.form = HubWeightForm::kFp8, .scale_end = "_scale_inv"};
  const json format = member_of(quantization, "fmt");
  if (!format.is_null() && format != "e4m3") return refused_quantization(name, "fmt", format, "\"e4m3\"");
  const json sizes = member_of(quantization, "weight_block_size");
  if (sizes.is_null()) return weights;
  CANDOR_TRY(read_block(sizes, "weight_block_size", name, weights));
  return weights;
}

Result<HubWeights> read_fp8_groups(const json& groups, std::string_view name) {
  HubWeights weights;
  for (const auto& [key, group] : groups.items()) {
    const std::string place = fmt::format("config_groups.{}", key.substr(0, 40));
    CANDOR_ASSIGN(const HubWeights read, read_group(group, place, name));
    const bool is_first = weights.form == HubWeightForm::kPlain;
    if (!is_first && (read.block_rows != weights.block_rows || read.block_columns != weights.block_columns)) {
      const json structure = member_of(member_of(group, "weights"), "block_structure");
      return refused_quantization(name, place + ".weights.block_structure", structure, "that of the other groups");
    }
    weights = read;
  }
  return weights;
}

Result<std::optional<JoinedWeight>> join_fp8(const HubWeights& weights, const TensorView& tensor,
                                             const FindTensor& find) {
  if (tensor.dtype != DType::kF8_E4M3) return std::optional<JoinedWeight>();
  const std::string name(tensor.name);
  CANDOR_ASSIGN(const Fp8Matrix m, fp8_matrix(weights, tensor, name + std::string(weights.scale_end), find));
  JoinedWeight joined{.name = name, .shape = tensor.shape, .parts = {std::string(m.scales.name)}};
  const size_t stem = name.rfind('.') + 1;
  for (const std::string_view end : kInputScales) {
    const std::string input = name.substr(0, stem).append(end);
    if (find(input) != nullptr) joined.parts.push_back(input);
  }
  joined.dtype = m.has_blocks() ? DType::kFP8 : DType::kF32;
  joined.fill = [m, fill = m.has_blocks() ? fill_blocks : fill_floats](std::byte* dst) { fill(m, dst); };
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
