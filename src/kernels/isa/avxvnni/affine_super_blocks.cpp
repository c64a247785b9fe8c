// Products with super-blocks that have minima: AVX2 with AVX-VNNI.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avxvnni/begin.h"
namespace candor::kernels::avxvnni {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = true;
constexpr int kDotRows = 6;
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/avxvnni/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_affine_super_blocks(const MatmulArgs& a) {
  multiply_family<KernelFamily::kAffineSuperBlocks>(a, WeightBlocks{});
}

}  // namespace candor::kernels::avxvnni
#include "kernels/isa/avxvnni/end.h"

#endif
