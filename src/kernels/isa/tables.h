#pragma once
// The tables of functions of all instruction sets (kernels.h), each nullptr where this program or this CPU lacks the
// set.

#include "kernels/kernels.h"

namespace candor::kernels {

const KernelTable* portable_table();
const KernelTable* avx2_table();
const KernelTable* avxvnni_table();
const KernelTable* avx512vnni_table();
const KernelTable* avx512bf16_table();
const KernelTable* amx_table();
const KernelTable* neon_table();
const KernelTable* neondot_table();
const KernelTable* neoni8mm_table();

}  // namespace candor::kernels
