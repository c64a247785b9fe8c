// Products with blocks of 32: tile registers.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/amx/asm_tiles.h"
#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::amx {
#include "kernels/generic/families.inl.h"
namespace {
#include "kernels/isa/amx/bodies.inl.h"
}  // namespace

void multiply_blocks(const MatmulArgs& m) {
  walk_family<BlockWalk, AsmTiles, KernelFamily::kBlocks>(m, WeightBlocks{});
}

}  // namespace candor::kernels::amx
#include "kernels/isa/avx512vnni/end.h"

#endif
