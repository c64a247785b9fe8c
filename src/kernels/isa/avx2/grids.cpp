// Products with weights of grids: AVX2.
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

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::avx2
#include "kernels/isa/avx2/end.h"

#endif
