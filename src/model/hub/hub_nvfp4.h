#pragma once
// Matrices in NVFP4 as blocks of FP4 (tensor/quant/fp4.h), with the numbers that they mean, code * scale * factor:
//
//                        codes                 scales                factor
//   modelopt             NAME.weight           NAME.weight_scale     NAME.weight_scale_2
//   compressed-tensors   NAME.weight_packed    NAME.weight_scale     1 / NAME.weight_global_scale
//   GGUF (type 40)       NAME.weight, both                           NAME.scale, one for each expert; 1 where absent
//
// Codes are bytes of two E2M1 [out, in / 2], the low nibble first; scales are E4M3 [out, in / 16]; the factor is one
// F32. In GGUF a block of 64 has 4 scales, then for each 16 elements 8 bytes of elements j and j + 8. Where rows are no
// whole blocks of 128 the matrix becomes F32. Nobody reads scales of activations and of K/V (input_scale,
// input_global_scale, k_scale, v_scale): neither is rounded here.
//
// Sources: ModelOpt's and compressed-tensors' checkpoints; llama.cpp's ggml-common.h, block_nvfp4.

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// What "quantization_config" of quant_method "modelopt" says: NVFP4, or FP8 (hub_fp8.h). name: of the file, for errors.
Result<HubWeights> read_modelopt(const nlohmann::json& quantization, std::string_view name);

// Older folders say it in hf_quant_config.json alone. Moves that into config where it says nothing itself.
Result<void> add_modelopt_config(const std::filesystem::path& folder, nlohmann::json& config);

// What the "config_groups" of compressed-tensors' "nvfp4-pack-quantized" say.
Result<HubWeights> read_nvfp4_groups(const nlohmann::json& groups, std::string_view name);

// Nothing where the tensor holds no codes. Refuses by name what does not fit them.
Result<std::optional<JoinedWeight>> join_nvfp4(const TensorView& tensor, const FindTensor& find);

// The GGUF file itself where it has no NVFP4, or with FP4 in its place, as copies.
Result<std::unique_ptr<formats::ModelFile>> with_joined_nvfp4(std::unique_ptr<formats::ModelFile> file);

}  // namespace candor::model
