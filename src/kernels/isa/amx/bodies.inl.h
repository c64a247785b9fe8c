// Everything that products and attention on tile registers are made of, inside avx512vnni's target region.
// Each of these uses the ones above it.
// clang-format off
#include "kernels/isa/avx512vnni/vocabulary.inl.h"
#include "kernels/generic/elementary.inl.h"
#include "kernels/generic/unpack.inl.h"
#include "kernels/generic/attend_pages.inl.h"
#include "kernels/generic/attend.inl.h"
#include "kernels/generic/row_tiles.inl.h"
#include "kernels/isa/amx/split.inl.h"
#include "kernels/isa/amx/tiles.inl.h"
#include "kernels/isa/amx/super_rows.inl.h"
#include "kernels/isa/amx/matmul_super.inl.h"
#include "kernels/isa/amx/matmul_bf16.inl.h"
#include "kernels/isa/amx/matmul_blocks.inl.h"
#include "kernels/generic/float_codes.inl.h"
#include "kernels/isa/amx/matmul_float_blocks.inl.h"
#include "kernels/isa/amx/matmul_scaled_rows.inl.h"
#include "kernels/isa/amx/attend.inl.h"
// clang-format on
