// Products with blocks of floats: AVX2.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx2/begin.h"
namespace candor::kernels::avx2 {
#include "kernels/generic/families.inl.h"
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx2/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/generic/matmul_float_blocks.inl.h"
// clang-format on
}  // namespace

void multiply_float_blocks(const MatmulArgs& a) {
  multiply_blocks_of_floats(a);
}

}  // namespace candor::kernels::avx2
#include "kernels/isa/avx2/end.h"

#endif
