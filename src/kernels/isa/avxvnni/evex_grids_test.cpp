// Products with weights of grids as AVX-512's narrow registers compute them, for evex_table_test.cpp.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avxvnni_evex {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = false;
constexpr int kDotRows = 4;
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/avxvnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::avxvnni_evex
#include "kernels/isa/avx512vnni/end.h"

#endif
