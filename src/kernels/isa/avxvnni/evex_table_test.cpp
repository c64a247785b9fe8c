// The bodies of this folder with the same byte products in AVX-512's encoding, on its narrow registers (VL): processors
// that have these and not AVX-VNNI prove them against portable.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "kernels/test_support.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avxvnni_evex {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = false;
constexpr int kDotRows = 6;
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/avxvnni/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::avxvnni_evex
#include "kernels/isa/avx512vnni/end.h"

namespace candor::kernels::testing {

const KernelTable* evex_avxvnni_table() {
  if (avx512vnni_table() == nullptr) return nullptr;
  static const KernelTable table = avxvnni_evex::make_table("avxvnni, evex", "AVX-VNNI's bodies on AVX-512 VL");
  return &table;
}

}  // namespace candor::kernels::testing

#else

namespace candor::kernels::testing {

const KernelTable* evex_avxvnni_table() {
  return nullptr;
}

}  // namespace candor::kernels::testing

#endif
