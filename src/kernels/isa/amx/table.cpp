#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "platform/cpu_features.h"

#if defined(__x86_64__) && !defined(CANDOR_LEAVE_OUT_TABLE)

#include "kernels/isa/amx/asm_tiles.h"
#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::amx {
#include "kernels/generic/families.inl.h"
namespace {
// clang-format off
#include "kernels/isa/amx/bodies.inl.h"
#include "kernels/isa/amx/table.inl.h"
// clang-format on
}  // namespace
}  // namespace candor::kernels::amx
#include "kernels/isa/avx512vnni/end.h"

namespace candor::kernels {

const KernelTable* amx_table() {
  static const bool runs = [] {
    const platform::CpuFeatures features = platform::detect_cpu_features();
    return features.amx_int8 && features.amx_bf16 && avx512vnni_table() != nullptr && platform::request_amx_tiles();
  }();
  if (!runs) return nullptr;
  static const KernelTable table = amx::make_tile_table<AsmTiles>("amx", "AMX int8 and bf16 tiles over AVX-512 VNNI");
  return &table;
}

}  // namespace candor::kernels

#else

namespace candor::kernels {

const KernelTable* amx_table() {
  return nullptr;
}

}  // namespace candor::kernels

#endif
