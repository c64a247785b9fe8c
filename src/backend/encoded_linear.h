#pragma once
// What operations of a backend may offer beside Ops: products whose input comes encoded already, so that ranks send
// rows as their next product wants them, in fewer bytes and with the same bits.

#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/op_terms.h"

namespace candor::backend {

class EncodedLinear {
 public:
  virtual ~EncodedLinear() = default;
  // Ops::linear() of an input that was encoded as its weights want it. rows: [n_rows] one behind the other, aligned.
  // REQUIRES: all weights want the same.
  virtual void linear_encoded(std::span<const LinearTerm> terms, int32_t n_rows, const std::byte* rows) = 0;
};

}  // namespace candor::backend
