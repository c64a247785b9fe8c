#pragma once
// The words in which kernels are written. nvcc compiles them for a GPU (language_device.h). For the emulation any C++
// compiler does, with emulation/language_host.h included before the source (candor_add_host_kernels of
// cmake/modules.cmake). Both headers declare the same names in candor::backend::cuda, and a kernel uses no builtin of
// CUDA by its own name. Functions of one source are in an anonymous namespace: others may have the same names.
//
//   CANDOR_KERNEL(name, Args) { ... args.x ... }   one thread of a kernel; Args is plain data
//   CANDOR_BOUNDED_KERNEL(name, Args, t, b)        the same with registers for b blocks of t threads on a processor
//   CANDOR_DEVICE                                  before a function that kernels call
//   CANDOR_TABLE int8_t kTable[4] = {...};         constants that kernels index
//   CANDOR_UNROLL                                  before a loop that indexes an array of registers
//
// Where a thread is (all uint32_t): thread() of n_threads() in its block, lane() of 32 in warp() of n_warps();
// block_x(), block_y(), block_z() of n_blocks_x(), n_blocks_y(), n_blocks_z().
//
// Floats, each operation rounded once to nearest even, with denormals as zero: fma_rn, mul_rn, add_rn, sub_rn, div_rn,
// sqrt_rn, to_float_rn(int32), to_int_rn(float) (NaN gives 0, what is too large the nearest int32), to_uint64_rn(float)
// (of 0 to 2^52). bits_of, float_of, half_to_float, float_to_half, bf16_to_float, float_to_bf16 give the bits of
// base/half.h; half_to_number is shorter, and gives a NaN any bits that a NaN may have. bf16_pair(low, high) rounds two
// at once, of which none is denormal; a NaN becomes any NaN.
//
// Shared memory of a block, which begins with unspecified bytes:
//   Shared<float> s = shared<float>(byte_offset);  s[i] = x; float y = s[i];  (never auto y = s[i])
//   s.pointer(i, n)                                n elements to be read at once, as by load16(s.pointer(i, 4))
//   store16(s, i, v)                               16 bytes from element i, aligned to 16
// A value that another thread reads needs sync_block() between, or sync_warp() within a warp.
//
// All threads of a block, or all lanes of a warp, come to these, none of them twice or never:
//   sync_block()                                   orders memory in the block
//   sync_warp()                                    orders memory in the warp
//   shuffle(value, lane), shuffle_xor(value, mask) of float, int32_t, uint32_t; orders no memory
//   ballot(condition)                              bit i is lane i's; orders no memory
//   mma_s8(d, a, b)                                d [16, 8] += a [16, 32] b [32, 8]: int8 products, int32 sums;
//                                                  fragments as PTX's mma.m16n8k32 with .s8 has them
// atomic_add(pointer, value): adds to an integer of global memory and gives what was there. The sum has no order, what
// is given has: nothing that decides a token may depend on it.
// dot4(a, b, c): c + the sum of four int8 products.
// dot2_low(a, b, c), dot2_high: c + the sum of two products, of a's int16 and b's two low (high) int8.
// permute_bytes(a, b, selectors): byte i is byte (selectors >> 4 i) % 8 of a (0 to 3) and b; bits 3 of selectors are 0.
//
// Copies from global to shared memory behind a thread's back, 16 bytes each, both ends aligned to 16:
//   copy_async16(s, i, source); commit_async(); wait_async<N>();
// wait_async<N> returns when all of the thread's groups but the last N arrived. Others see the bytes after it and a
// barrier. A thread waits for all before it ends.
//
// load16(pointer), store16(pointer, v): 16 bytes as a Uint4 (x, y, z, w), aligned to 16. Other global memory is read
// and written through pointers. store16 takes no pointer of shared memory.

#if defined(__CUDACC__)
#include "backend/cuda/kernels/language_device.h"
#elif !defined(CANDOR_KERNEL)
#error "kernels are compiled by nvcc, or by the emulation behind its own words"
#endif
