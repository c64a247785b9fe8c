#include "model/hub/hub_weights.h"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "formats/quote.h"
#include "model/hub/hub_bnb.h"
#include "model/hub/hub_fp8.h"
#include "model/hub/hub_gptq.h"
#include "model/hub/hub_hqq.h"
#include "model/hub/hub_nvfp4.h"
#include "model/hub/hub_packed.h"
#include "model/hub/hub_parts.h"
#include "model/hub/hub_quantization.h"
#include "tensor/quant/w8a8.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

constexpr std::string_view kScaleEnd = "_scale";

Result<void> check_group(const json& group, const std::string& place, std::string_view name) {
  CANDOR_TRY(check_quantization(
      member_of(group, "weights"), place + ".weights",
      {{"type", "int"}, {"num_bits", 8}, {"symmetric", true}, {"strategy", "channel"}}, name));
  const json format = member_of(group, "format");
  if (!format.is_null() && format != "int-quantized") {
    return refused_quantization(name, place + ".format", format, "\"int-quantized\"");
  }
  const json output = member_of(group, "output_activations");
  if (!output.is_null()) return refused_quantization(name, place + ".output_activations", output, "null");
  return check_quantization(
      member_of(group, "input_activations"), place + ".input_activations",
      {{"type", "int"}, {"num_bits", 8}, {"symmetric", true}, {"strategy", "token"}, {"dynamic", true}}, name);
}

Result<HubWeights> read_compressed(const json& quantization, std::string_view name) {
  const json format = member_of(quantization, "format");
  const bool is_float = format == "float-quantized";
  const bool is_packed = format == "pack-quantized";
  const bool is_nvfp4 = format == "nvfp4-pack-quantized";
  if (!is_float && !is_packed && !is_nvfp4 && format != "int-quantized") {
    return refused_quantization(
        name, "format", format,
        "\"int-quantized\", \"float-quantized\", \"pack-quantized\" or \"nvfp4-pack-quantized\"");
  }
  const json kv = member_of(quantization, "kv_cache_scheme");
  if (!kv.is_null()) return refused_quantization(name, "kv_cache_scheme", kv, "null");
  const json sparsity = member_of(member_of(quantization, "sparsity_config"), "format");
  if (!sparsity.is_null() && sparsity != "dense") {
    return refused_quantization(name, "sparsity_config.format", sparsity, "\"dense\"");
  }
  const json transform = member_of(quantization, "transform_config");
  if (!transform.is_null() && !transform.empty()) {
    return refused_quantization(name, "transform_config", transform, "null");
  }
  const json groups = member_of(quantization, "config_groups");
  if (!groups.is_object() || groups.empty()) {
    return refused_quantization(name, "config_groups", groups, "groups of layers");
  }
  if (is_float) return read_fp8_groups(groups, name);
  if (is_packed) return read_packed_groups(groups, name);
  if (is_nvfp4) return read_nvfp4_groups(groups, name);
  for (const auto& [key, group] : groups.items()) {
    CANDOR_TRY(check_group(group, fmt::format("config_groups.{}", key.substr(0, 40)), name));
  }
  return HubWeights{.form = HubWeightForm::kInt8Channels};
}

// Members that must be so where they are given.
Result<void> check_given(const json& object, std::initializer_list<ExpectedMember> rows, std::string_view name) {
  for (const ExpectedMember& row : rows) {
    const json seen = member_of(object, row.key);
    if (!seen.is_null() && seen != row.value) return refused_quantization(name, row.key, seen, row.value.dump());
  }
  return {};
}

Result<HubWeights> read_gptq(const json& quantization, bool is_awq, std::string_view name) {
  HubWeights weights{.form = is_awq ? HubWeightForm::kAwq : HubWeightForm::kGptq};
  const json bits = member_of(quantization, "bits");
  const bool is_known = is_awq ? bits == 4 : bits == 2 || bits == 3 || bits == 4 || bits == 8;
  if (!is_known) return refused_quantization(name, "bits", bits, is_awq ? "4" : "2, 3, 4 or 8");
  weights.bits = bits.get<int>();
  const json group = member_of(quantization, "group_size");
  if (!group.is_number_integer() || group > INT32_MAX || (group != -1 && group < 1)) {
    return refused_quantization(name, "group_size", group, "-1 or a multiple of 32");
  }
  weights.group = group.get<int64_t>();
  if (is_awq) {
    std::string version = member_of(quantization, "version").is_string() ? member_of(quantization, "version") : "gemm";
    for (char& c : version) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (version != "gemm") return refused_quantization(name, "version", version, "\"gemm\"");
    return weights;
  }
  CANDOR_TRY(check_given(quantization, {{"lm_head", false}, {"pack_dtype", "int32"}}, name));
  const json format = member_of(quantization, "checkpoint_format");
  if (!format.is_null() && format != "gptq" && format != "gptq_v2") {
    return refused_quantization(name, "checkpoint_format", format, "\"gptq\" or \"gptq_v2\"");
  }
  const json dynamic = member_of(quantization, "dynamic");
  if (!dynamic.is_null() && !dynamic.empty()) return refused_quantization(name, "dynamic", dynamic, "null");
  weights.has_lowered_zeros = format != "gptq_v2";
  return weights;
}

// Layers that "extra_config" treats in another way: left in floats, or else refused.
Result<void> check_layers(const json& quantization, std::string_view name) {
  const json layers = member_of(quantization, "extra_config");
  if (layers.is_null()) return {};
  if (!layers.is_object()) return refused_quantization(name, "extra_config", layers, "an object");
  for (const auto& [key, layer] : layers.items()) {
    const json bits = member_of(layer, "bits");
    if (bits.is_number() && bits >= 16) continue;
    for (const char* member : {"bits", "group_size", "data_type"}) {
      const json seen = member_of(layer, member);
      if (seen.is_null() || seen == member_of(quantization, member)) continue;
      return refused_quantization(name, fmt::format("extra_config.{}.{}", key.substr(0, 80), member), seen,
                                  "that of the other layers, or 16 bits");
    }
  }
  return {};
}

// AutoRound: GPTQ's tensors or AWQ's, as its packing format says.
Result<HubWeights> read_auto_round(const json& quantization, std::string_view name) {
  CANDOR_TRY(check_given(quantization, {{"data_type", "int"}}, name));
  CANDOR_TRY(check_layers(quantization, name));
  const json bits = member_of(quantization, "act_bits");
  if (!bits.is_null() && !(bits.is_number() && bits >= 16)) {
    return refused_quantization(name, "act_bits", bits, "16");
  }
  const json packing = member_of(quantization, "packing_format");
  const bool is_awq = packing == "auto_round:auto_awq";
  if (!is_awq && packing != "auto_round:auto_gptq") {
    return refused_quantization(name, "packing_format", packing,
                                "\"auto_round:auto_gptq\" or \"auto_round:auto_awq\"");
  }
  return read_gptq(quantization, is_awq, name);
}

// What is asked for by other means than "quant_method", in words.
std::string unnamed_method(const json& quantization) {
  if (quantization.contains("bits") && quantization.contains("group_size")) return "null, as in MLX's folders";
  return "null";
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
  if (!is_float_type(scales->dtype) || scales->shape.n_elements() != codes.shape[0]) {
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
  json quantization = member_of(config, "quantization_config");
  if (quantization.is_null()) quantization = member_of(config, "quantization");  // MLX
  if (quantization.is_null()) return HubWeights{};
  const json method = member_of(quantization, "quant_method");
  if (method == "mxfp4") return HubWeights{};
  if (method == "gptq" || method == "awq") return read_gptq(quantization, method == "awq", name);
  if (method == "bitsandbytes") return read_bnb(quantization, name);
  if (method == "hqq") return HubWeights{.form = HubWeightForm::kHqq};
  if (method == "auto-round" || method == "intel/auto-round") return read_auto_round(quantization, name);
  if (method == "fp8") return read_fp8(quantization, name);
  if (method == "modelopt" || (method.is_null() && quantization.contains("quant_algo"))) {
    return read_modelopt(quantization, name);
  }
  if (method == "compressed-tensors") return read_compressed(quantization, name);
  return refused_method(name, method.is_string() ? method.dump() : unnamed_method(quantization));
}

Result<std::optional<JoinedWeight>> join_weight(const HubWeights& weights, const TensorView& tensor,
                                                const FindTensor& find) {
  const bool is_grouped = weights.form == HubWeightForm::kGptq || weights.form == HubWeightForm::kAwq;
  if (is_grouped) return join_gptq(weights, tensor, find);
  if (weights.form == HubWeightForm::kBitsAndBytes) return join_bnb(tensor, find);
  if (weights.form == HubWeightForm::kHqq) return join_hqq(tensor, find);
  if (weights.form == HubWeightForm::kFp8) return join_fp8(weights, tensor, find);
  if (weights.form == HubWeightForm::kPacked) return join_packed(weights, tensor, find);
  if (weights.form == HubWeightForm::kNvfp4) return join_nvfp4(tensor, find);
  if (weights.form != HubWeightForm::kInt8Channels || tensor.dtype != DType::kI8) return std::optional<JoinedWeight>();
  JoinedWeight joined{.name = std::string(tensor.name), .dtype = DType::kW8A8, .shape = tensor.shape};
  const std::string scale_name = std::string(tensor.name).append(kScaleEnd);
  const TensorView* scales = find(scale_name);
  CANDOR_TRY(check_int8(tensor, scales));
  joined.parts = {scale_name};
  joined.fill = [codes = tensor, of = *scales](std::byte* dst) { join_int8(codes, of, dst); };
  return std::optional<JoinedWeight>(std::move(joined));
}

bool is_joined(const HubWeights& weights, const TensorView& tensor) {
  return weights.form != HubWeightForm::kPlain && dtype_info(tensor.dtype).block_elements > 1;
}

Result<void> refuse_joined(const HubWeights& weights, const TensorView& tensor, std::string_view model_type) {
  if (!is_joined(weights, tensor)) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("tensor {}: quantised weights are not read where a {} model's matrices are others than its "
                          "files'; get the model in BF16 or as a GGUF file",
                          formats::in_quotes(tensor.name), model_type));
}

}  // namespace candor::model
