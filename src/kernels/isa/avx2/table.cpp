#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avx2/begin.h"
namespace candor::kernels::avx2 {
#include "kernels/generic/families.inl.h"
namespace {
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/avx2/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::avx2
#include "kernels/isa/avx2/end.h"

namespace candor::kernels {

const KernelTable* avx2_table() {
  static const bool runs = [] {
    const platform::CpuFeatures features = platform::detect_cpu_features();
    return features.avx2;
  }();
  if (!runs) return nullptr;  // make_table is compiled for this instruction set too
  static const KernelTable table = avx2::make_table("avx2", "AVX2 with FMA and F16C");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* avx2_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
