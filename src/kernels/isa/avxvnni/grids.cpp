// Products with weights of grids: AVX2 with AVX-VNNI.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avxvnni/begin.h"
namespace candor::kernels::avxvnni {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = true;
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

}  // namespace candor::kernels::avxvnni
#include "kernels/isa/avxvnni/end.h"

#endif
