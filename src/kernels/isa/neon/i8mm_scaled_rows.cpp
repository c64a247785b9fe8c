// Products with rows of int8 that have one scale: NEON with products of int8 matrices.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

#include "kernels/isa/neon/i8mm_begin.h"
namespace candor::kernels::neoni8mm {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = true;
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/scaled_tile.inl.h"
#include "kernels/isa/neon/i8mm_scaled_tile.inl.h"
#include "kernels/generic/scaled_panels.inl.h"
// clang-format on
}  // namespace

void multiply_scaled_rows(const MatmulArgs& a) {
  multiply_scaled(a);
}

}  // namespace candor::kernels::neoni8mm
#include "kernels/isa/neon/end.h"

#endif
