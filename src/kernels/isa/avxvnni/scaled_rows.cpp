// Products with rows of int8 that have one scale: AVX2 with AVX-VNNI.
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
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/matmul_scaled_rows.inl.h"
// clang-format on
}  // namespace

void multiply_scaled_rows(const MatmulArgs& a) {
  multiply_scaled(a);
}

}  // namespace candor::kernels::avxvnni
#include "kernels/isa/avxvnni/end.h"

#endif
