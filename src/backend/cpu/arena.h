#pragma once
// The memory that a step needs on the CPU beside weights and K/V: its activations, and scratch for each compute thread.
// One buffer each, sized before the first step, so that a step allocates nothing.

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "backend/op_terms.h"
#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::backend::cpu {

class Arena {
 public:
  static Result<Arena> make(const ArenaLayout& layout);
  Arena() = default;

  // What make() will take; at most the largest number where that is beyond the address space.
  static uint64_t n_bytes(const ArenaLayout& layout);

  int32_t max_rows() const { return max_rows_; }

  // [n_cols] of row i; rows are contiguous. REQUIRES: the activation fits its slot.
  float* row(const Activation& x, int32_t i) {
    const Slot& slot = slots_[static_cast<size_t>(x.slot)];
    CANDOR_DCHECK(static_cast<size_t>(x.n_rows) * static_cast<size_t>(x.n_cols) <= slot.n_floats && i < x.n_rows);
    return floats_at(slot.offset_bytes) + static_cast<size_t>(i) * static_cast<size_t>(x.n_cols);
  }
  float* data(const Activation& x) { return row(x, 0); }

 private:
  struct Slot {
    size_t offset_bytes = 0;
    size_t n_floats = 0;
  };
  float* floats_at(size_t offset_bytes) { return reinterpret_cast<float*>(memory_.data() + offset_bytes); }

  std::vector<Slot> slots_;
  platform::HugeBuffer memory_;
  int32_t max_rows_ = 0;
};

// A 64-byte aligned piece for each thread. Grows, never shrinks; contents are lost when it grows.
class ThreadScratch {
 public:
  explicit ThreadScratch(int32_t n_threads) : n_threads_(n_threads) {}
  Result<void> reserve(size_t bytes_per_thread);
  std::byte* of(int32_t thread) { return memory_.data() + static_cast<size_t>(thread) * bytes_per_thread_; }

 private:
  int32_t n_threads_;
  size_t bytes_per_thread_ = 0;
  platform::HugeBuffer memory_;
};

}  // namespace candor::backend::cpu
