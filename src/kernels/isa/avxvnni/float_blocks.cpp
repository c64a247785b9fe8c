// Products with blocks of floats: AVX2 with AVX-VNNI.
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avxvnni/begin.h"
namespace candor::kernels::avxvnni {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = true;
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

}  // namespace candor::kernels::avxvnni
#include "kernels/isa/avxvnni/end.h"

#endif
