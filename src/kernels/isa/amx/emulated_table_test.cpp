// The bodies of this folder on tile registers in software, so that any AVX-512 machine proves them against portable.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/amx/asm_tiles.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "kernels/test_support.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::amx_emulated {
#include "kernels/generic/families.inl.h"
namespace {
// clang-format off
#include "kernels/isa/amx/bodies.inl.h"
#include "kernels/isa/amx/table.inl.h"
// clang-format on
// Uses the vocabulary.
#include "kernels/isa/amx/emulated_tiles.inl.h"
}  // namespace
}  // namespace candor::kernels::amx_emulated
#include "kernels/isa/avx512vnni/end.h"

namespace candor::kernels::testing {

const KernelTable* emulated_amx_table() {
  if (avx512vnni_table() == nullptr) return nullptr;
  static const KernelTable table =
      amx_emulated::make_tile_table<amx_emulated::EmulatedTiles>("amx, emulated", "tile registers in software");
  return &table;
}

}  // namespace candor::kernels::testing

#else

namespace candor::kernels::testing {

const KernelTable* emulated_amx_table() {
  return nullptr;
}

}  // namespace candor::kernels::testing

#endif
