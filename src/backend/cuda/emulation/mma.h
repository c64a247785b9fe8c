#pragma once
// The matrix product of a warp on the host, by the fragment layouts of the PTX manual. Any thread.

#include <array>
#include <cstdint>

namespace candor::backend::cuda::emulation {

// Of one lane: 4, 4 and 2 registers.
struct MmaFragments {
  int32_t* d = nullptr;
  const uint32_t* a = nullptr;
  const uint32_t* b = nullptr;
};

// mma.m16n8k32.row.col.s32.s8.s8.s32: d [16, 8] += a [16, 32] b [32, 8], in int32 that wraps.
void multiply_s8(const std::array<MmaFragments, 32>& lanes);

}  // namespace candor::backend::cuda::emulation
