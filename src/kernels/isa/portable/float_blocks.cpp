// Products with blocks of floats: plain C++.
#include "kernels/isa/standard_headers.h"

namespace candor::kernels::portable {
#include "kernels/generic/families.inl.h"
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/generic/matmul_float_blocks.inl.h"
// clang-format on
}  // namespace

void multiply_float_blocks(const MatmulArgs& a) {
  multiply_blocks_of_floats(a);
}

}  // namespace candor::kernels::portable
