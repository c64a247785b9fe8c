#pragma once
// Matrices that HQQ has quantised (Badri and Shaji, "Half-quadratic quantization of large machine learning models",
// 2023), as its library saves them in safetensors:
//
//   STEM.W_q         U8, or I32 of 3 bits: [groups, group] (axis 1) or [group, groups] (axis 0), whose rows are packed:
//   row r
//                    of R / n rows is in the (r / (R / n))-th n-th of each word from the high bits on; n: 1 of 8 bits,
//                    2 of 4, 10 of 3, 4 of 2, 8 of 1
//   STEM.scale, .zero  floats, one for each group
//   STEM.shape       I64 [2]: out, in;  .nbits, .group_size, .axis I32
//
// A number is (code - zero) * scale, each step rounded to the type of scale and zero, as the library computes it; a
// matrix becomes one of that type.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Nothing where the tensor is no "*.W_q". Refuses by name what does not fit together, and scales that are quantised
// again.
Result<std::optional<JoinedWeight>> join_hqq(const TensorView& tensor, const FindTensor& find);

}  // namespace candor::model
