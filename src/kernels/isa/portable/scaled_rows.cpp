// Products with rows of int8 that have one scale: plain C++.
#include "kernels/isa/standard_headers.h"

namespace candor::kernels::portable {
#include "kernels/generic/families.inl.h"
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/matmul_scaled_rows.inl.h"
// clang-format on
}  // namespace

void multiply_scaled_rows(const MatmulArgs& a) {
  multiply_scaled(a);
}

}  // namespace candor::kernels::portable
