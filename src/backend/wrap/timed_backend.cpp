#include "backend/wrap/timed_backend.h"

#include <cstdint>

namespace candor::backend {

OpTime OpTimes::total() const {
  OpTime sum;
  for (const OpTime& time : times_) {
    sum.n_calls += time.n_calls;
    sum.ns += time.ns;
    sum.weight_bytes += time.weight_bytes;
  }
  return sum;
}

void TimedOps::run(const Op& operation) {
  describe(operation, operands_);
  const int64_t start = clock_.now_ns();
  inner_.run(operation);
  OpTime& time = times_.of(operands_.kind);
  time.ns += clock_.now_ns() - start;
  time.weight_bytes += operands_.weight_bytes;
  ++time.n_calls;
}

}  // namespace candor::backend
