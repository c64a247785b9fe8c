#pragma once
// An optional interface of a backend's Ops: matrix products whose input rows are already encoded (int8 codes, say) the
// way the weights want them. Ranks use it to send each other encoded rows: fewer bytes, and the same bits in the
// result.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/op_terms.h"

namespace candor::backend {

class EncodedLinear {
 public:
  virtual ~EncodedLinear() = default;
  // Ops::linear() of an input in the encoding of its weights. rows: [n_rows] one after another, 64-byte aligned.
  // REQUIRES: all weights want the same.
  virtual void linear_encoded(std::span<const LinearTerm> terms, int32_t n_rows, const std::byte* rows) = 0;
};

}  // namespace candor::backend
