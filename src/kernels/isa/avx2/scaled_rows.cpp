// Products with rows of int8 that have one scale: AVX2.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx2/begin.h"
namespace candor::kernels::avx2 {
#include "kernels/generic/families.inl.h"
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx2/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/matmul_scaled_rows.inl.h"
// clang-format on
}  // namespace

void multiply_scaled_rows(const MatmulArgs& a) {
  multiply_scaled(a);
}

}  // namespace candor::kernels::avx2
#include "kernels/isa/avx2/end.h"

#endif
