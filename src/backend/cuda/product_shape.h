#pragma once
// Where the parts of packed weights and of encoded rows lie, for the arguments of a product.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/kernels/product_args.h"
#include "base/checked.h"
#include "kernels/packed_weight.h"

namespace candor::backend::cuda {

// Of a matrix; which one, its rows and results are still to be said.
inline ProductArgs product_args(const kernels::WeightShape& shape, const std::byte* activations) {
  const kernels::Encoding encoding = kernels::encoding_of(shape.dtype);
  return {.activations = activations,
          .row_bytes = checked_cast<int32_t>(kernels::encoded_row_bytes(encoding, shape.n_in)),
          .sums_at = checked_cast<int32_t>(kernels::encoded_sums_offset(encoding, shape.n_in)),
          .scales_at = checked_cast<int32_t>(kernels::encoded_scales_offset(encoding, shape.n_in)),
          .halves_at = checked_cast<int32_t>(kernels::encoded_halves_offset(shape.n_in)),
          .panel_bytes = checked_cast<int32_t>(kernels::panel_bytes(shape)),
          .n_in = checked_cast<int32_t>(shape.n_in)};
}

}  // namespace candor::backend::cuda
