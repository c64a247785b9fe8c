// Products with weights of grids: AVX-512 with VNNI.
#include "kernels/isa/avx512vnni/undefined_operands.h"
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

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::avx512vnni
#include "kernels/isa/avx512vnni/end.h"

#endif
