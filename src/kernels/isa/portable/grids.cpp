// Products with weights of grids: plain C++.
#include "kernels/isa/standard_headers.h"

namespace candor::kernels::portable {
#include "kernels/generic/families.inl.h"
namespace {
// The products use the vocabulary.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/generic/products.inl.h"
// clang-format on
}  // namespace

void multiply_grids(const MatmulArgs& a) {
  multiply_family<KernelFamily::kGrids>(a, WeightBlocks{});
}

}  // namespace candor::kernels::portable
