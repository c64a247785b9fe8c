// Products with weights of grids: NEON with dot products.
#include "kernels/isa/standard_headers.h"

#if defined(__aarch64__)

#include "kernels/isa/neon/begin.h"
namespace candor::kernels::neondot {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = true;
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::neondot
#include "kernels/isa/neon/end.h"

#endif
