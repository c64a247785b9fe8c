#include "model/hub/hub_weights.h"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/quote.h"
#include "model/hub/hub_int4.h"
#include "tensor/quant/w8a8.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

constexpr std::string_view kScaleEnd = "_scale";
constexpr std::string_view kRemedy =
    "read are compressed-tensors' int-quantized by channel with dynamic activations by token, gptq and awq of 4 bits; "
    "else get the model in BF16 or as a GGUF file";

json member(const json& object, std::string_view key) {
  const auto at = object.is_object() ? object.find(key) : object.end();
  return !object.is_object() || at == object.end() ? json() : *at;
}

// Of a configuration, what is seen at `place`, a dotted name below quantization_config.
Error refused(std::string_view name, std::string_view place, const json& seen, std::string_view expected) {
  const std::string text = seen.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 60);
  return fail(ErrorKind::kUnsupported, fmt::format("{}: quantization_config: {} is {}, expected {}; {}", name, place,
                                                   text, expected, kRemedy));
}

struct Expected {
  std::string_view key;
  json value;
};

Result<void> check_members(const json& object, std::string_view place, std::initializer_list<Expected> rows,
                           std::string_view name) {
  for (const Expected& row : rows) {
    const json seen = member(object, row.key);
    if (seen != row.value) return refused(name, fmt::format("{}.{}", place, row.key), seen, row.value.dump());
  }
  return {};
}

Result<void> check_group(const json& group, const std::string& place, std::string_view name) {
  CANDOR_TRY(check_members(member(group, "weights"), place + ".weights",
                           {{"type", "int"}, {"num_bits", 8}, {"symmetric", true}, {"strategy", "channel"}}, name));
  const json format = member(group, "format");
  if (!format.is_null() && format != "int-quantized") {
    return refused(name, place + ".format", format, "\"int-quantized\"");
  }
  const json output = member(group, "output_activations");
  if (!output.is_null()) return refused(name, place + ".output_activations", output, "null");
  return check_members(
      member(group, "input_activations"), place + ".input_activations",
      {{"type", "int"}, {"num_bits", 8}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}}, name);
}

Result<void> check_compressed(const json& quantization, std::string_view name) {
  const json format = member(quantization, "format");
  if (format != "int-quantized") return refused(name, "format", format, "\"int-quantized\"");
  const json kv = member(quantization, "kv_cache_scheme");
  if (!kv.is_null()) return refused(name, "kv_cache_scheme", kv, "null");
  const json sparsity = member(member(quantization, "sparsity_config"), "format");
  if (!sparsity.is_null() && sparsity != "dense") return refused(name, "sparsity_config.format", sparsity, "\"dense\"");
  const json transform = member(quantization, "transform_config");
  if (!transform.is_null() && !transform.empty()) return refused(name, "transform_config", transform, "null");
  const json groups = member(quantization, "config_groups");
  if (!groups.is_object() || groups.empty()) return refused(name, "config_groups", groups, "groups of layers");
  for (const auto& [key, group] : groups.items()) {
    CANDOR_TRY(check_group(group, fmt::format("config_groups.{}", key.substr(0, 40)), name));
  }
  return {};
}

// Members that must be so where they are given.
Result<void> check_given(const json& object, std::initializer_list<Expected> rows, std::string_view name) {
  for (const Expected& row : rows) {
    const json seen = member(object, row.key);
    if (!seen.is_null() && seen != row.value) return refused(name, row.key, seen, row.value.dump());
  }
  return {};
}

Result<HubWeights> read_int4(const json& quantization, bool is_awq, std::string_view name) {
  HubWeights weights{.form = is_awq ? HubWeightForm::kAwq : HubWeightForm::kGptq};
  const json bits = member(quantization, "bits");
  if (bits != 4) return refused(name, "bits", bits, "4");
  const json group = member(quantization, "group_size");
  if (!group.is_number_integer() || group > INT32_MAX || (group != -1 && group < 1)) {
    return refused(name, "group_size", group, "-1 or a multiple of 32");
  }
  weights.group = group.get<int64_t>();
  if (is_awq) {
    std::string version = member(quantization, "version").is_string() ? member(quantization, "version") : "gemm";
    for (char& c : version) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (version != "gemm") return refused(name, "version", version, "\"gemm\"");
    return weights;
  }
  CANDOR_TRY(check_given(quantization, {{"lm_head", false}, {"pack_dtype", "int32"}}, name));
  const json format = member(quantization, "checkpoint_format");
  if (!format.is_null() && format != "gptq" && format != "gptq_v2") {
    return refused(name, "checkpoint_format", format, "\"gptq\" or \"gptq_v2\"");
  }
  const json dynamic = member(quantization, "dynamic");
  if (!dynamic.is_null() && !dynamic.empty()) return refused(name, "dynamic", dynamic, "null");
  weights.has_lowered_zeros = format != "gptq_v2";
  return weights;
}

bool holds_scales(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<void> check_int8(const TensorView& codes, const TensorView* scales) {
  const std::string what = fmt::format("tensor {}", in_quotes(codes.name));
  if (scales == nullptr) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: {} is missing, which holds its scales", what,
                                                      in_quotes(std::string(codes.name).append(kScaleEnd))));
  }
  const int64_t n_in = codes.shape.row_elements();
  if (codes.shape.n_dims != 2 || n_in % quant::BlockW8A8::kElements != 0 || n_in > quant::kMostW8A8Elements) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: int8 of shape {}; expected a matrix with rows of a multiple of {}, at most {}", what,
                            to_string(codes.shape), quant::BlockW8A8::kElements, quant::kMostW8A8Elements));
  }
  if (!holds_scales(scales->dtype) || scales->shape.n_elements() != codes.shape[0]) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("tensor {}: {} of shape {}; expected a number for each of the {} rows of {}",
                            in_quotes(scales->name), dtype_info(scales->dtype).name, to_string(scales->shape),
                            codes.shape[0], in_quotes(codes.name)));
  }
  return {};
}

void join_int8(const TensorView& codes, const TensorView& scales, std::byte* dst) {
  const auto n_in = static_cast<size_t>(codes.shape[1]);
  const auto unit = static_cast<size_t>(dtype_info(scales.dtype).block_bytes);
  for (int64_t row = 0; row < codes.shape[0]; ++row) {
    float scale = 0.0f;
    decode_elements(scales.dtype, scales.data + static_cast<size_t>(row) * unit, 1, &scale);
    std::memcpy(dst, &scale, sizeof scale);
    std::memcpy(dst + sizeof scale, codes.data + static_cast<size_t>(row) * n_in, n_in);
    dst += sizeof scale + n_in;
  }
}

}  // namespace

Result<HubWeights> read_hub_weights(const json& config, std::string_view name) {
  const json quantization = member(config, "quantization_config");
  if (quantization.is_null()) return HubWeights{};
  const json method = member(quantization, "quant_method");
  if (method == "mxfp4") return HubWeights{};
  if (method == "gptq" || method == "awq") return read_int4(quantization, method == "awq", name);
  if (method != "compressed-tensors") return refused(name, "quant_method", method, "one that is read");
  CANDOR_TRY(check_compressed(quantization, name));
  return HubWeights{.form = HubWeightForm::kInt8Channels};
}

Result<std::optional<JoinedWeight>> join_weight(const HubWeights& weights, const TensorView& tensor,
                                                const FindTensor& find) {
  const bool is_int4 = weights.form == HubWeightForm::kGptq || weights.form == HubWeightForm::kAwq;
  if (is_int4) return join_int4(weights, tensor, find);
  if (weights.form != HubWeightForm::kInt8Channels || tensor.dtype != DType::kI8) return std::optional<JoinedWeight>();
  JoinedWeight joined{.name = std::string(tensor.name), .dtype = DType::kW8A8, .shape = tensor.shape};
  const std::string scale_name = std::string(tensor.name).append(kScaleEnd);
  const TensorView* scales = find(scale_name);
  CANDOR_TRY(check_int8(tensor, scales));
  joined.parts = {scale_name};
  joined.fill = [codes = tensor, of = *scales](std::byte* dst) { join_int8(codes, of, dst); };
  return std::optional<JoinedWeight>(std::move(joined));
}

}  // namespace candor::model
