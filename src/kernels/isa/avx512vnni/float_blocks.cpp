// Products with blocks of floats: AVX-512 with VNNI.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avx512vnni {
#include "kernels/generic/families.inl.h"
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx512vnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/generic/matmul_float_blocks.inl.h"
// clang-format on
}  // namespace

void multiply_float_blocks(const MatmulArgs& a) {
  multiply_blocks_of_floats(a);
}

}  // namespace candor::kernels::avx512vnni
#include "kernels/isa/avx512vnni/end.h"

#endif
