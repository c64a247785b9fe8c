#pragma once
// One function for each instruction set: its table, or nullptr where this program or this CPU lacks it.

#include "kernels/kernels.h"

namespace candor::kernels {

const KernelTable* portable_table();
const KernelTable* avx2_table();
const KernelTable* avx512vnni_table();
const KernelTable* amx_table();
const KernelTable* neon_table();
const KernelTable* neondot_table();

}  // namespace candor::kernels
