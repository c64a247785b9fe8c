#pragma once
// The words of kernels (language.h) on a GPU. Compiled by nvcc alone, with -fmad=false and -ftz=true: every float
// operation below is one IEEE operation. Sources: NVIDIA's PTX manual (mma.m16n8k32, cp.async, dp4a), CUDA C++ guide.

#include <cstddef>
#include <cstdint>

// A kernel takes one struct of plain data by value, as `args`.
#define CANDOR_KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args args)
#define CANDOR_BOUNDED_KERNEL(name, Args, n_threads, n_blocks) \
  extern "C" __global__ void __launch_bounds__(n_threads, n_blocks) name(const __grid_constant__ Args args)
#define CANDOR_DEVICE __device__ __forceinline__
#define CANDOR_TABLE static __device__ const
#define CANDOR_UNROLL _Pragma("unroll")

#include "backend/cuda/kernels/numbers_device.h"  // IWYU pragma: export

namespace candor::backend::cuda {

// Where this thread is. A block has up to 1024 threads in one row; a warp is 32 of them.
CANDOR_DEVICE uint32_t thread() {
  return threadIdx.x;
}
CANDOR_DEVICE uint32_t n_threads() {
  return blockDim.x;
}
CANDOR_DEVICE uint32_t lane() {
  return threadIdx.x % 32;
}
CANDOR_DEVICE uint32_t warp() {
  return threadIdx.x / 32;
}
CANDOR_DEVICE uint32_t n_warps() {
  return blockDim.x / 32;
}
CANDOR_DEVICE uint32_t block_x() {
  return blockIdx.x;
}
CANDOR_DEVICE uint32_t block_y() {
  return blockIdx.y;
}
CANDOR_DEVICE uint32_t block_z() {
  return blockIdx.z;
}
CANDOR_DEVICE uint32_t n_blocks_x() {
  return gridDim.x;
}
CANDOR_DEVICE uint32_t n_blocks_y() {
  return gridDim.y;
}
CANDOR_DEVICE uint32_t n_blocks_z() {
  return gridDim.z;
}

// The block's memory, from an offset that is a multiple of T's size.
template <class T>
struct Shared {
  T* data;

  CANDOR_DEVICE T& operator[](size_t i) const { return data[i]; }
  CANDOR_DEVICE const T* pointer(size_t i, size_t) const { return data + i; }
};
extern __shared__ __align__(128) unsigned char block_memory[];
template <class T>
CANDOR_DEVICE Shared<T> shared(size_t byte_offset) {
  return {reinterpret_cast<T*>(block_memory + byte_offset)};
}

// All threads of the block, or of the warp, come here; what they wrote to shared memory is seen behind it.
CANDOR_DEVICE void sync_block() {
  __syncthreads();
}
CANDOR_DEVICE void sync_warp() {
  __syncwarp();
}

// All 32 threads of a warp take part. T: float, int32_t or uint32_t.
template <class T>
CANDOR_DEVICE T shuffle_xor(T value, uint32_t mask) {
  return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
}
template <class T>
CANDOR_DEVICE T shuffle(T value, uint32_t from_lane) {
  return __shfl_sync(0xffffffffu, value, static_cast<int>(from_lane));
}
CANDOR_DEVICE uint32_t ballot(bool bit) {
  return __ballot_sync(0xffffffffu, bit);
}

// d += a b of a warp: 16 x 32 signed bytes by 32 x 8. With g = lane / 4 and t = lane % 4: a[0], a[2] hold row g, a[1],
// a[3] row g + 8; a[0], a[1] hold k 4 t to 4 t + 3, a[2], a[3] the same + 16. b[0], b[1] hold those k of column g.
// d[0], d[1] are row g, columns 2 t and 2 t + 1; d[2], d[3] row g + 8.
CANDOR_DEVICE void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

CANDOR_DEVICE uint32_t atomic_add(uint32_t* at, uint32_t value) {
  return atomicAdd(at, value);
}
CANDOR_DEVICE uint64_t atomic_add(uint64_t* at, uint64_t value) {
  return atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
}

struct alignas(16) Uint4 {
  uint32_t x, y, z, w;
};
// REQUIRES: addresses that are multiples of 16.
CANDOR_DEVICE Uint4 load16(const void* src) {
  return *static_cast<const Uint4*>(src);
}
CANDOR_DEVICE void store16(void* dst, const Uint4& value) {
  *static_cast<Uint4*>(dst) = value;
}
template <class T>
CANDOR_DEVICE void store16(Shared<T> dst, size_t i, const Uint4& value) {
  *reinterpret_cast<Uint4*>(dst.data + i) = value;
}

// 16 bytes from global to shared memory, past the registers: they are there when this thread has waited for their
// group, and for other threads behind sync_block().
template <class T>
CANDOR_DEVICE void copy_async16(Shared<T> dst, size_t i, const void* src) {
  const uint32_t address = static_cast<uint32_t>(__cvta_generic_to_shared(dst.data + i));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(src) : "memory");
}
// What was asked for since the last commit becomes a group.
CANDOR_DEVICE void commit_async() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
// Waits until at most n_pending of the newest groups are on their way.
template <int n_pending>
CANDOR_DEVICE void wait_async() {
  asm volatile("cp.async.wait_group %0;" ::"n"(n_pending) : "memory");
}

}  // namespace candor::backend::cuda
