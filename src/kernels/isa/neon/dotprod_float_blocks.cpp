// Products with blocks of floats: NEON with dot products.
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
#include "kernels/generic/products.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/generic/matmul_float_blocks.inl.h"
// clang-format on
}  // namespace

void multiply_float_blocks(const MatmulArgs& a) {
  multiply_blocks_of_floats(a);
}

}  // namespace candor::kernels::neondot
#include "kernels/isa/neon/end.h"

#endif
