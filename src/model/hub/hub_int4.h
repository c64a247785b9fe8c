#pragma once
// Matrices of 4-bit codes with a scale and a zero point for each group of k, as GPTQ and AWQ store them, as blocks of
// Q4_0 or Q5_0. Value = scale * (code - zero); eight codes lie in an I32.
//
//          qweight                     qzeros                  scales             order of 8 codes, from the low bits
//   gptq   [in / 8, out]: 8 k          [groups, out / 8]       [groups, out]      0 1 2 3 4 5 6 7
//   awq    [in, out / 8]: 8 outputs    [groups, out / 8]       [groups, out]      0 2 4 6 1 3 5 7

#include <optional>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Nothing where the tensor is no "*.qweight". Refuses by name what does not fit together, scales that no f16 is, and
// groups whose k do not lie together (g_idx).
Result<std::optional<JoinedWeight>> join_int4(const HubWeights& weights, const TensorView& tensor,
                                              const FindTensor& find);

}  // namespace candor::model
