// NEON as every Armv8-A processor has it.
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"

#if defined(__aarch64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

namespace candor::kernels {
namespace neon {
#include "kernels/generic/families.inl.h"
namespace {
constexpr bool kHasSdot = false;
// The bodies use the vocabulary.
// clang-format off
#include "kernels/isa/neon/vocabulary.inl.h"
#include "kernels/generic/table.inl.h"
// clang-format on
}  // namespace
}  // namespace neon

const KernelTable* neon_table() {
  static const KernelTable table = neon::make_table("neon", "NEON");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* neon_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
