// Products with blocks of 32: AVX2.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx2/begin.h"
namespace candor::kernels::avx2 {
#include "kernels/generic/families.inl.h"
namespace {
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/avx2/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_blocks(const MatmulArgs& a) {
  multiply_one_of<DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kIQ4_NL, DType::kMXFP4>(
      a);
}

}  // namespace candor::kernels::avx2
#include "kernels/isa/avx2/end.h"

#endif
