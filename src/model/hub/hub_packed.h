#pragma once
// Matrices in compressed-tensors' "pack-quantized" form: codes of 4 or 8 bits, a scale for each row or for each group
// of k, perhaps zero points. Value = scale * (code - zero), unrounded.
//
//   NAME_packed      I32 [out, in * bits / 32]: the codes of a row, from the low bits
//   NAME_scale       [out, groups], float
//   NAME_shape       I64 or I32 [2]: out, in
//   NAME_zero_point  I32 [out * bits / 32, groups]: as codes, down the outputs; symmetric ones have none: half of
//                    the codes' range
//
// A matrix becomes the smallest type that means exactly these numbers:
//
//   Q4_0, Q5_0, Q8_0  4 bits with every zero point 8, other 4 bits, 8 bits whose differences are int8; of scales that
//                     are f16, as every bf16 from 2^-17 to 2^16 is
//   FP8               4 bits with any scale in groups of whole blocks of 128 (codes to 16 are exact in E4M3)
//   F32               the rest
//   F16, BF16         as the scales, rounded, where groups follow the activations (actorder "group": weight_g_idx)

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// groups: "config_groups", an object.
Result<HubWeights> read_packed_groups(const nlohmann::json& groups, std::string_view name);

// Nothing where the tensor is no "*_packed". Refuses by name what does not fit together.
Result<std::optional<JoinedWeight>> join_packed(const HubWeights& weights, const TensorView& tensor,
                                                const FindTensor& find);

}  // namespace candor::model
