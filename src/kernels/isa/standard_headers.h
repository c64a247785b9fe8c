#pragma once
// Everything that bodies use from outside, included before a target region opens: code of the standard library that is
// compiled inside a region could be picked up by callers outside it. And the one macro that forces inlining.

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
#include "kernels/packed_format.h"
#include "kernels/scratch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

// For what a hot loop calls: gcc's own measure gives up on bodies of this size.
#define CANDOR_INLINE inline __attribute__((always_inline))
