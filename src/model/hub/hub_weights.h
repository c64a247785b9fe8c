#pragma once
// Reads quantised weights of a Hugging Face checkpoint: what config.json's "quantization_config" says of them, and how
// the tensors that make up one matrix (codes, scales, zero points) become one weight of the engine, with exactly the
// same numbers:
//
//   compressed-tensors   "int-quantized" by channel with dynamic activations by token: W8A8 (tensor/quant/w8a8.h) of
//                        NAME I8 [out, in] and NAME_scale [out, 1]
//                        "float-quantized": FP8 (hub_fp8.h)
//                        "pack-quantized": 4 or 8 bits by channel or group: Q4_0, Q5_0, Q8_0 (hub_packed.h)
//   fp8                  FP8 (tensor/quant/fp8.h) of codes E4M3 and NAME_scale_inv (hub_fp8.h)
//   gptq, awq, auto-round  codes with a scale and a zero point for each group of k (hub_gptq.h)
//   bitsandbytes         NF4, FP4 and int8 (hub_bnb.h)
//   hqq                  1 to 8 bits (hub_hqq.h)
//   modelopt             NVFP4 and FP8; compressed-tensors' "nvfp4-pack-quantized" (hub_nvfp4.h)
//
// Whatever else is said is refused by name. Pure; the functions that fill copies are called later, on any thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace candor::model {

enum class HubWeightForm : uint8_t {
  kPlain,  // floats, or what a family has a form for
  kInt8Channels,
  kGptq,
  kAwq,
  kFp8,
  kPacked,
  kBitsAndBytes,
  kHqq,
  kNvfp4,
};

// What a group of layers in "config_groups" says.
struct HubScheme {
  int bits = 0;
  int64_t group = -1;  // k that share a scale; -1: all of a row
  bool is_symmetric = true;  // no zero points
};

struct HubWeights {
  HubWeightForm form = HubWeightForm::kPlain;
  int bits = 4;                   // of gptq
  int64_t group = 0;              // k that share a scale; -1: all of a row
  bool has_lowered_zeros = false;  // zero points are stored less 1
  int64_t block_rows = 0;          // of fp8, that share a scale; 0: all columns of a row or of all rows do
  int64_t block_columns = 0;
  std::string_view scale_end = "_scale";  // of the name of scales
  std::vector<HubScheme> schemes = {};     // of packed ones
};

// name: of the file, for errors.
Result<HubWeights> read_hub_weights(const nlohmann::json& config, std::string_view name);

// A tensor of the folder by its name there, or nullptr.
using FindTensor = std::function<const TensorView*(const std::string& name)>;

// One matrix out of several tensors.
struct JoinedWeight {
  std::string name;  // as of a folder that is not quantised
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::string> parts = {};  // names of the other tensors that it is made of
  std::function<void(std::byte* dst)> fill = {};
};

// Nothing where the tensor is no matrix's codes. Refuses by name what does not fit together.
Result<std::optional<JoinedWeight>> join_weight(const HubWeights& weights, const TensorView& tensor,
                                                const FindTensor& find);

// Whether a tensor was made so; and the refusal of one whose rows or numbers would have to be changed.
bool is_joined(const HubWeights& weights, const TensorView& tensor);
Result<void> refuse_joined(const HubWeights& weights, const TensorView& tensor, std::string_view model_type);

}  // namespace candor::model
