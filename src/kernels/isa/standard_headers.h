#pragma once
// What kernels use from outside, for every file that compiles them for an instruction set. Included before the region
// of that set opens: code of the standard library that is compiled inside could be picked up by callers outside it, and
// crash older processors. And the one macro that forces inlining.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/exact_math.h"
#include "base/half.h"
#include "kernels/kernels.h"
#include "kernels/kv_codes.h"
#include "kernels/packed_format.h"
#include "kernels/packed_grid.h"
#include "kernels/scratch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

// For what a hot loop calls: gcc's own measure gives up on bodies of this size.
#define CANDOR_INLINE inline __attribute__((always_inline))
// For a tile: inlined beside others, it shares registers with what they hold, and gcc 12 keeps some sums in memory.
#define CANDOR_NO_INLINE __attribute__((noinline))
// Of what generic/elementary.inl.h defines, which other compilers of ours give to other processors.
#define CANDOR_ELEMENTARY CANDOR_INLINE
#define CANDOR_CONSTANT constexpr float
