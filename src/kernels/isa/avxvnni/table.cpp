#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avxvnni/begin.h"
namespace candor::kernels::avxvnni {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasVexDots = true;
constexpr int kDotRows = 6;
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/avxvnni/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::avxvnni
#include "kernels/isa/avxvnni/end.h"

namespace candor::kernels {

const KernelTable* avxvnni_table() {
  static const bool runs = [] {
    const platform::CpuFeatures features = platform::detect_cpu_features();
    return features.avx_vnni;
  }();
  if (!runs) return nullptr;  // make_table is compiled for this instruction set too
  static const KernelTable table = avxvnni::make_table("avxvnni", "AVX2 with AVX-VNNI");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* avxvnni_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
