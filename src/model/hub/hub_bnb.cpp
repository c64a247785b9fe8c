#include "model/hub/hub_bnb.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/half.h"
#include "formats/json_text.h"
#include "formats/quote.h"
#include "model/hub/hub_parts.h"
#include "model/hub/hub_quantization.h"
#include "tensor/dtype.h"

namespace candor::model {
namespace {

using nlohmann::json;

constexpr size_t kMaxStateBytes = 4096;
constexpr std::string_view kWeightEnd = ".weight";

float float_at(const TensorView& tensor, int64_t i) {
  float value;
  std::memcpy(&value, tensor.data + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

int byte_at(const TensorView& tensor, int64_t i) {
  return static_cast<int>(tensor.data[static_cast<size_t>(i)]);
}

// What the state says of a matrix.
struct FourBitState {
  int64_t block = 0;
  DType dtype = DType::kBF16;
  Shape shape{};
  int64_t nested_block = 0;  // 0: nothing is nested
  float nested_offset = 0.0f;
};

struct FourBitMatrix {
  FourBitState state{};
  TensorView codes{};
  TensorView map{};
  TensorView absmax{};
  TensorView nested_map{};
  TensorView nested_absmax{};

  int64_t n_blocks() const { return ceil_div(state.shape.n_elements(), state.block); }
  float largest(int64_t block) const {
    if (state.nested_block == 0) return float_at(absmax, block);
    return float_at(nested_map, byte_at(absmax, block)) * float_at(nested_absmax, block / state.nested_block) +
           state.nested_offset;
  }
};

std::optional<int64_t> count_in(const json& state, const char* key) {
  const json value = member_of(state, key);
  constexpr int64_t kMost = int64_t{1} << 40;
  if (!value.is_number_integer() || value < 1 || value > kMost) return std::nullopt;
  return value.get<int64_t>();
}

Result<FourBitState> read_state(const TensorView& tensor) {
  const auto bad = [&](const std::string& why) { return refused_tensor(tensor, why); };
  if (tensor.dtype != DType::kI8 || tensor.n_bytes > kMaxStateBytes) return bad("no state of a matrix, which is JSON");
  const auto parsed = formats::parse_json({reinterpret_cast<const char*>(tensor.data), tensor.n_bytes},
                                          formats::in_quotes(tensor.name));
  if (!parsed) return bad(parsed.error().message);
  FourBitState state;
  const auto block = count_in(*parsed, "blocksize");
  if (!block) return bad("\"blocksize\" is no number of codes that share a scale");
  state.block = *block;
  const json dtype = member_of(*parsed, "dtype");
  if (dtype != "bfloat16" && dtype != "float16" && dtype != "float32") {
    return bad(fmt::format("\"dtype\" is {}; expected bfloat16, float16 or float32", formats::in_quotes(dtype.dump())));
  }
  state.dtype = dtype == "bfloat16" ? DType::kBF16 : dtype == "float16" ? DType::kF16 : DType::kF32;
  const json shape = member_of(*parsed, "shape");
  const bool is_matrix = shape.is_array() && shape.size() == 2 && shape[0].is_number_integer() &&
                         shape[1].is_number_integer() && shape[0] >= 1 && shape[1] >= 1 && shape[0] <= INT32_MAX &&
                         shape[1] <= INT32_MAX;
  if (!is_matrix)
    return bad(fmt::format("\"shape\" is {}; expected that of a matrix", formats::in_quotes(shape.dump())));
  state.shape = {2, {shape[0].get<int64_t>(), shape[1].get<int64_t>()}};
  if (!parsed->contains("nested_blocksize")) return state;
  const auto nested = count_in(*parsed, "nested_blocksize");
  const json offset = member_of(*parsed, "nested_offset");
  if (!nested || !offset.is_number()) return bad("\"nested_blocksize\" and \"nested_offset\" are no numbers");
  state.nested_block = *nested;
  state.nested_offset = offset.get<float>();
  return state;
}

Result<void> check_four_bits(const FourBitMatrix& m) {
  const int64_t n = m.state.shape.n_elements();
  if (m.codes.dtype != DType::kI8 || static_cast<int64_t>(m.codes.n_bytes) != ceil_div(n, int64_t{2})) {
    return refused_tensor(m.codes,
                          fmt::format("{} of shape {} holds no 4 bits for each of {}", dtype_info(m.codes.dtype).name,
                                      to_string(m.codes.shape), to_string(m.state.shape)));
  }
  const auto vector = [](int64_t size) { return Shape{1, {size}}; };
  CANDOR_TRY(check_part(m.map, m.map.dtype == DType::kF32, vector(16)));
  const bool is_nested = m.state.nested_block > 0;
  CANDOR_TRY(check_part(m.absmax, m.absmax.dtype == (is_nested ? DType::kI8 : DType::kF32), vector(m.n_blocks())));
  if (!is_nested) return {};
  CANDOR_TRY(check_part(m.nested_map, m.nested_map.dtype == DType::kF32, vector(256)));
  return check_part(m.nested_absmax, m.nested_absmax.dtype == DType::kF32,
                    vector(ceil_div(m.n_blocks(), m.state.nested_block)));
}

void put(DType dtype, float value, int64_t i, std::byte* dst) {
  if (dtype == DType::kF32) {
    std::memcpy(dst + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
    return;
  }
  const uint16_t half = dtype == DType::kBF16 ? f32_to_bf16(value) : f32_to_f16(value);
  std::memcpy(dst + static_cast<size_t>(i) * sizeof half, &half, sizeof half);
}

void fill_four_bits(const FourBitMatrix& m, std::byte* dst) {
  const int64_t n = m.state.shape.n_elements();
  for (int64_t begin = 0; begin < n; begin += m.state.block) {
    const float largest = m.largest(begin / m.state.block);
    for (int64_t i = begin; i < std::min(n, begin + m.state.block); ++i) {
      const int code = byte_at(m.codes, i / 2) >> (i % 2 == 0 ? 4 : 0) & 15;
      put(m.state.dtype, float_at(m.map, code) * largest, i, dst);
    }
  }
}

Result<std::optional<JoinedWeight>> join_four_bits(const TensorView& codes, const std::string& state_name,
                                                   const FindTensor& find) {
  const std::string name(codes.name);
  FourBitMatrix m{.codes = codes};
  CANDOR_ASSIGN(m.state, read_state(*find(state_name)));
  CANDOR_ASSIGN(m.map, part_of(codes, name + ".quant_map", find));
  CANDOR_ASSIGN(m.absmax, part_of(codes, name + ".absmax", find));
  JoinedWeight joined{.name = name, .dtype = m.state.dtype, .shape = m.state.shape};
  joined.parts = {state_name, name + ".quant_map", name + ".absmax"};
  if (m.state.nested_block > 0) {
    CANDOR_ASSIGN(m.nested_map, part_of(codes, name + ".nested_quant_map", find));
    CANDOR_ASSIGN(m.nested_absmax, part_of(codes, name + ".nested_absmax", find));
    joined.parts.insert(joined.parts.end(), {name + ".nested_quant_map", name + ".nested_absmax"});
  }
  CANDOR_TRY(check_four_bits(m));
  joined.fill = [m](std::byte* dst) { fill_four_bits(m, dst); };
  return std::optional<JoinedWeight>(std::move(joined));
}

Result<std::optional<JoinedWeight>> join_rows(const TensorView& codes, const TensorView& scales,
                                              const std::string& format) {
  if (codes.dtype != DType::kI8 || codes.shape.n_dims != 2) {
    return refused_tensor(codes, fmt::format("{} of shape {}; expected a matrix of int8", dtype_info(codes.dtype).name,
                                             to_string(codes.shape)));
  }
  CANDOR_TRY(check_part(scales, scales.dtype == DType::kF32, Shape{1, {codes.shape[0]}}));
  JoinedWeight joined{.name = std::string(codes.name), .dtype = DType::kF16, .shape = codes.shape};
  joined.parts = {std::string(scales.name), format};
  joined.fill = [codes, scales](std::byte* dst) {
    for (int64_t row = 0; row < codes.shape[0]; ++row) {
      const float scale = float_at(scales, row) / 127.0f;
      for (int64_t i = row * codes.shape[1]; i < (row + 1) * codes.shape[1]; ++i) {
        put(DType::kF16, static_cast<float>(static_cast<int8_t>(byte_at(codes, i))) * scale, i, dst);
      }
    }
  };
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace

Result<HubWeights> read_bnb(const json& quantization, std::string_view name) {
  const json storage = member_of(quantization, "bnb_4bit_quant_storage");
  if (!storage.is_null() && storage != "uint8") {
    return refused_quantization(name, "bnb_4bit_quant_storage", storage, "\"uint8\"");
  }
  return HubWeights{.form = HubWeightForm::kBitsAndBytes};
}

Result<std::optional<JoinedWeight>> join_bnb(const TensorView& tensor, const FindTensor& find) {
  const std::string name(tensor.name);
  for (const char* type : {"nf4", "fp4"}) {
    const std::string state = fmt::format("{}.quant_state.bitsandbytes__{}", name, type);
    if (find(state) != nullptr) return join_four_bits(tensor, state, find);
  }
  if (!tensor.name.ends_with(kWeightEnd)) return std::optional<JoinedWeight>();
  const std::string stem = name.substr(0, name.size() - kWeightEnd.size());
  if (const TensorView* scales = find(stem + ".SCB")) return join_rows(tensor, *scales, stem + ".weight_format");
  return std::optional<JoinedWeight>();
}

}  // namespace candor::model
