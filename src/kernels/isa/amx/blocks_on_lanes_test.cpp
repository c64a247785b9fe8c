// Products with blocks of 32 on tile registers in software, their lanes those of AVX2 and of the portable vocabulary:
// machines without AVX-512 prove them against portable too. AVX2's codes of eight bits come signed, as isa/neon's do;
// the portable ones with an offset of 128, as AVX-512's do.
#include "kernels/isa/amx/tile_config.h"
#include "kernels/isa/standard_headers.h"
#include "kernels/isa/tables.h"
#include "kernels/test_support.h"

#if defined(__x86_64__)

#include "kernels/isa/avx2/begin.h"
namespace candor::kernels::blocks_on_avx2 {
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx2/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/row_tiles.inl.h"
#include "kernels/isa/amx/tiles.inl.h"
#include "kernels/isa/amx/matmul_blocks.inl.h"
#include "kernels/isa/amx/emulated_tiles.inl.h"
// clang-format on

void multiply(const MatmulArgs& m) {
  if (family_of(m.shape.dtype) != KernelFamily::kBlocks) return avx2_table()->matmul(m);
  walk_family<BlockWalk, EmulatedTiles, KernelFamily::kBlocks>(m, WeightBlocks{});
}
}  // namespace
}  // namespace candor::kernels::blocks_on_avx2
#include "kernels/isa/avx2/end.h"

namespace candor::kernels::blocks_on_portable {
namespace {
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/portable/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/row_tiles.inl.h"
#include "kernels/isa/amx/tiles.inl.h"
#include "kernels/isa/amx/matmul_blocks.inl.h"
#include "kernels/isa/amx/emulated_tiles.inl.h"
// clang-format on

void multiply(const MatmulArgs& m) {
  if (family_of(m.shape.dtype) != KernelFamily::kBlocks) return runnable_tables().back()->matmul(m);
  walk_family<BlockWalk, EmulatedTiles, KernelFamily::kBlocks>(m, WeightBlocks{});
}
}  // namespace
}  // namespace candor::kernels::blocks_on_portable

namespace candor::kernels::testing {

std::vector<const KernelTable*> blocks_on_lanes_tables() {
  static const std::array<KernelTable, 2> tables = [] {
    std::array<KernelTable, 2> made = {*portable_table(), *portable_table()};
    made[0].name = "blocks on tiles, portable";
    made[0].matmul = blocks_on_portable::multiply;
    made[1].name = "blocks on tiles, avx2";
    made[1].matmul = blocks_on_avx2::multiply;
    return made;
  }();
  std::vector<const KernelTable*> found = {&tables[0]};
  if (avx2_table() != nullptr) found.push_back(&tables[1]);
  return found;
}

}  // namespace candor::kernels::testing

#else

namespace candor::kernels::testing {

std::vector<const KernelTable*> blocks_on_lanes_tables() {
  return {};
}

}  // namespace candor::kernels::testing

#endif
