// Products with super-blocks that have minima: tile registers.
#if defined(__GNUC__) && !defined(__clang__)
// gcc 12's own avx512fintrin.h initialises its "undefined" operands with themselves, and warns about it once inlined.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/amx/asm_tiles.h"
#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::amx {
#include "kernels/generic/families.inl.h"
namespace {
#include "kernels/isa/amx/bodies.inl.h"
}  // namespace

void multiply_affine_super_blocks(const MatmulArgs& m) {
  multiply_super_blocks<AsmTiles, KernelFamily::kAffineSuperBlocks>(m, WeightBlocks{});
}

}  // namespace candor::kernels::amx
#include "kernels/isa/avx512vnni/end.h"

#endif
