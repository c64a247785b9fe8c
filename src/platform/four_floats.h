#pragma once
// Four floats side by side, in the registers that every processor of its kind has: for loops outside of the kernels,
// where one order of operations is worth more than the widest registers. +, -, *, / and comparisons are the language's.

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

namespace candor::platform {

using Four = float __attribute__((vector_size(16)));

inline Four four(float value) {
  return Four{value, value, value, value};
}

// NaN gives lo.
inline Four clamped(Four x, Four lo, Four hi) {
#ifdef __SSE2__
  return _mm_min_ps(_mm_max_ps(x, lo), hi);  // the compiler makes three operations of each
#else
  const Four at_least = x > lo ? x : lo;
  return at_least < hi ? at_least : hi;
#endif
}

}  // namespace candor::platform
