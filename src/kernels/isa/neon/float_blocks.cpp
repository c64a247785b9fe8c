// Products with blocks of floats: NEON.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

namespace candor::kernels::neon {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = false;
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

}  // namespace candor::kernels::neon

#endif
