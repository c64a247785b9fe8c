#pragma once
// Matrices of codes E4M3 with scales in a tensor of their own, as blocks of FP8 (tensor/quant/fp8.h) with the numbers
// that they mean, code * scale in f32:
//
//                        codes                scales
//   fp8                  NAME.weight          NAME.weight_scale_inv   DeepSeek's, Qwen's, MiniMax's, Mistral's
//   compressed-tensors   NAME.weight          NAME.weight_scale       "float-quantized"
//
// Scales are F32, BF16 or F16: one for each block of rows and columns that config.json names ([rows / n, columns / m],
// the last ones shorter), or, where it names none, one for each output ([out] or [out, 1]) or one in all. Where rows
// are no whole blocks of 128, or their scales change elsewhere, the matrix becomes F32. Scales of activations are read
// by nobody: activations are not rounded to 8 bits here.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// What "quantization_config" of quant_method "fp8" says. name: of the file, for errors.
Result<HubWeights> read_fp8(const nlohmann::json& quantization, std::string_view name);

// What the "config_groups" of compressed-tensors' "float-quantized" say.
Result<HubWeights> read_fp8_groups(const nlohmann::json& groups, std::string_view name);

// Nothing where the tensor is not of type F8_E4M3. Refuses by name scales that do not fit it.
Result<std::optional<JoinedWeight>> join_fp8(const HubWeights& weights, const TensorView& tensor,
                                             const FindTensor& find);

}  // namespace candor::model
