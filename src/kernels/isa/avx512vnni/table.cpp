#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::avx512vnni {
#include "kernels/generic/families.inl.h"
namespace {
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/avx512vnni/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::avx512vnni
#include "kernels/isa/avx512vnni/end.h"

namespace candor::kernels {

const KernelTable* avx512vnni_table() {
  static const bool runs = [] {
    const platform::CpuFeatures features = platform::detect_cpu_features();
    return features.avx512 && features.avx512_vnni;
  }();
  if (!runs) return nullptr;  // make_table is compiled for this instruction set too
  static const KernelTable table = avx512vnni::make_table("avx512vnni", "AVX-512 with VNNI");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* avx512vnni_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
