#pragma once
// Where the slots of an arena lie in one piece of memory, the same for every device. Constant after construction.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/op_terms.h"
#include "base/error.h"

namespace candor::backend {

class ArenaPlaces {
 public:
  // Refuses sizes below 0, and what no address space holds.
  static Result<ArenaPlaces> make(const ArenaLayout& layout);
  ArenaPlaces() = default;

  // What make() will need; at most the largest number where that is beyond the address space.
  static uint64_t n_bytes(const ArenaLayout& layout);

  size_t n_bytes() const { return n_bytes_; }
  int32_t max_rows() const { return max_rows_; }

  // Offset of row i in bytes, a multiple of 128 for the first; rows are contiguous. REQUIRES: the activation fits its
  // slot.
  size_t row_at(const Activation& x, int32_t i) const {
    const Slot& slot = slots_[static_cast<size_t>(x.slot)];
    CANDOR_DCHECK(static_cast<size_t>(x.n_rows) * static_cast<size_t>(x.n_cols) <= slot.n_floats && i < x.n_rows);
    return slot.offset_bytes + static_cast<size_t>(i) * static_cast<size_t>(x.n_cols) * sizeof(float);
  }

 private:
  struct Slot {
    size_t offset_bytes = 0;
    size_t n_floats = 0;
  };

  std::vector<Slot> slots_;
  size_t n_bytes_ = 0;
  int32_t max_rows_ = 0;
};

}  // namespace candor::backend
