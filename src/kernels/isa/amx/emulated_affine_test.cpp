// Products with super-blocks that have minima: tile registers in software, for emulated_table_test.cpp.
#include "kernels/isa/avx512vnni/undefined_operands.h"
#include "kernels/isa/amx/tile_config.h"
#include "kernels/isa/standard_headers.h"

#if defined(__x86_64__)

#include "kernels/isa/avx512vnni/begin.h"
namespace candor::kernels::amx_emulated {
#include "kernels/generic/families.inl.h"
namespace {
#include "kernels/isa/amx/bodies.inl.h"
// Uses the vocabulary.
#include "kernels/isa/amx/emulated_tiles.inl.h"
}  // namespace

void multiply_affine_super_blocks(const MatmulArgs& m) {
  walk_family<SuperWalk, EmulatedTiles, KernelFamily::kAffineSuperBlocks>(m, WeightBlocks{});
}

}  // namespace candor::kernels::amx_emulated
#include "kernels/isa/avx512vnni/end.h"

#endif
