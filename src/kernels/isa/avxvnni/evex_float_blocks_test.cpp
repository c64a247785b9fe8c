// Products with blocks of floats as AVX-512's narrow registers compute them, for evex_table_test.cpp.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avxvnni_evex {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = false;
constexpr int kDotRows = 6;
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avxvnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/generic/matmul_float_blocks.inl.h"
// clang-format on
}  // namespace

void multiply_float_blocks(const MatmulArgs& a) {
  multiply_blocks_of_floats(a);
}

}  // namespace candor::kernels::avxvnni_evex
#include "kernels/isa/avx512vnni/end.h"

#endif
