// Products with rows of int8 that have one scale: NEON.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

namespace candor::kernels::neon {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = false;
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/matmul_scaled_rows.inl.h"
// clang-format on
}  // namespace

void multiply_scaled_rows(const MatmulArgs& a) {
  multiply_scaled(a);
}

}  // namespace candor::kernels::neon

#endif
