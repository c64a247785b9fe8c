#pragma once
// The memory that a step needs on the CPU beside weights and K/V: its activations, and scratch for each compute thread.
// One buffer each, sized before the first step, so that a step allocates nothing.

#include <cstdint>

#include "backend/arena_places.h"
#include "backend/backend.h"
#include "backend/op_terms.h"
#include "base/error.h"
#include "platform/huge_buffer.h"

namespace candor::backend::cpu {

class Arena {
 public:
  static Result<Arena> make(const ArenaLayout& layout);
  Arena() = default;

  int32_t max_rows() const { return places_.max_rows(); }

  // [n_cols] of row i; rows are contiguous. REQUIRES: the activation fits its slot.
  float* row(const Activation& x, int32_t i) { return reinterpret_cast<float*>(memory_.data() + places_.row_at(x, i)); }
  float* data(const Activation& x) { return row(x, 0); }

 private:
  ArenaPlaces places_;
  platform::HugeBuffer memory_;
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
