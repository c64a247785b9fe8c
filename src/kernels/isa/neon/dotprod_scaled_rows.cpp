// Products with rows of int8 that have one scale: NEON with dot products.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

#include "kernels/isa/neon/begin.h"
namespace candor::kernels::neondot {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = true;
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

}  // namespace candor::kernels::neondot
#include "kernels/isa/neon/end.h"

#endif
