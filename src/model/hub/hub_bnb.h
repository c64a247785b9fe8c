#pragma once
// Matrices that bitsandbytes has quantised, as the `transformers` library saves them (Dettmers et al., "QLoRA", 2023;
// "LLM.int8()", 2022):
//
//   NF4, FP4   NAME                U8 [out * in / 2, 1]: a code in each half of a byte, the high one first, row by row
//              NAME.quant_map      F32 [16]: what a code means
//              NAME.absmax         F32 [blocks], or U8, whose meaning is nested_quant_map[code] * nested_absmax[block]
//              +
//                                  nested_offset, in blocks of nested_blocksize
//              NAME.quant_state.bitsandbytes__nf4, or __fp4   JSON: blocksize, dtype, shape, and what is nested
//   int8       NAME                I8 [out, in];  STEM.SCB F32 [out]: of each row the number that 127 means
//
// A number is quant_map[code] * absmax, or code * SCB / 127. A matrix becomes one of the type that the library makes of
// it before it multiplies: bfloat16 or float16 as the state says, float16 of int8.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

Result<HubWeights> read_bnb(const nlohmann::json& quantization, std::string_view name);

// Nothing where the tensor is no such matrix. Refuses by name what does not fit together.
Result<std::optional<JoinedWeight>> join_bnb(const TensorView& tensor, const FindTensor& find);

}  // namespace candor::model
