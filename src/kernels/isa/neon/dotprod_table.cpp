// NEON with the dot product instructions of Armv8.2-A.
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__aarch64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/neon/begin.h"
namespace candor::kernels::neondot {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = true;
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::neondot
#include "kernels/isa/neon/end.h"

namespace candor::kernels {

const KernelTable* neondot_table() {
  static const bool runs = platform::detect_cpu_features().neon_dot;
  if (!runs) return nullptr;
  static const KernelTable table = neondot::make_table("neondot", "NEON with dot products");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* neondot_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
