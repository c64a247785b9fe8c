#pragma once
// The float mode of every thread that computes (numerics.md, rule 1): denormal operands and results count as zero, and
// rounding is to nearest even. Restores what it found, since the thread may belong to a host program.

#include <cstdint>

namespace candor::platform {

class ScopedFloatMode {
 public:
  ScopedFloatMode() noexcept;
  ~ScopedFloatMode() noexcept;
  ScopedFloatMode(const ScopedFloatMode&) = delete;
  ScopedFloatMode& operator=(const ScopedFloatMode&) = delete;

 private:
  uint64_t saved_;
};

// True when the calling thread computes in that mode.
bool float_mode_is_set() noexcept;

}  // namespace candor::platform
