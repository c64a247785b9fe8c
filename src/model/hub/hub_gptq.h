#pragma once
// Matrices of 2, 3, 4 or 8-bit codes with a scale and a zero point for each group of k, as GPTQ and (of 4 bits) AWQ
// store them. Value = scale * (code - zero). Codes lie in I32, from the low bits on; those of 3 bits cross from one to
// the next.
//
//          qweight                        qzeros                     scales           order of 8 codes, from the low
//          bits
//   gptq   [in * bits / 32, out]: down k  [groups, out * bits / 32]  [groups, out]    0 1 2 3 4 5 6 7
//   awq    [in, out / 8]: 8 outputs       [groups, out / 8]          [groups, out]    0 2 4 6 1 3 5 7
//
// A matrix becomes the smallest type that means exactly these numbers: Q4_0 (2 and 3 bits, and 4 where every zero point
// is 8), Q5_0 (4 bits), Q8_0 (8 bits whose differences are int8), F32. Where groups follow the activations (desc_act:
// g_idx says each k's group) no block type can, and it becomes F16: the numbers, rounded, that the library computes
// with.

#include <optional>

#include "base/error.h"
#include "model/hub/hub_weights.h"
#include "tensor/tensor_view.h"

namespace candor::model {

// Nothing where the tensor is no "*.qweight". Refuses by name what does not fit together, and scales that no f16 is.
Result<std::optional<JoinedWeight>> join_gptq(const HubWeights& weights, const TensorView& tensor,
                                              const FindTensor& find);

}  // namespace candor::model
