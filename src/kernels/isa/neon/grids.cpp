// Products with weights of grids: NEON.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

namespace candor::kernels::neon {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = false;
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::neon

#endif
