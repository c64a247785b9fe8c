// Products with float weights: AVX-512 with VNNI.
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12's own avx512fintrin.h initialises its "undefined" operands with themselves, and warns about it once inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avx512vnni {
#include "kernels/generic/families.inl.h"
namespace {
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/avx512vnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_floats(const MatmulArgs& a) {
  multiply_family<KernelFamily::kFloats>(a, WeightBlocks{});
}

}  // namespace candor::kernels::avx512vnni
#include "kernels/isa/avx512vnni/end.h"

#endif
