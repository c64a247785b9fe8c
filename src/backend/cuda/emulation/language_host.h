#pragma once
// The words of kernels/language.h on a host, where a ThreadBlock runs the threads of a block. Accesses of shared memory
// are watched: an element is read and written as a whole, and its address is not to be had.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "backend/cuda/emulation/numbers_host.h"  // IWYU pragma: export
#include "backend/cuda/emulation/thread_block.h"

#define CANDOR_KERNEL(name, Args) void name([[maybe_unused]] const Args& args)
#define CANDOR_BOUNDED_KERNEL(name, Args, n_threads, n_blocks) CANDOR_KERNEL(name, Args)
#define CANDOR_DEVICE inline
#define CANDOR_TABLE inline constexpr
#define CANDOR_UNROLL

namespace candor::backend::cuda {

struct alignas(16) Uint4 {
  uint32_t x, y, z, w;
};

namespace emulation {
inline ThreadBlock& here() {
  return ThreadBlock::running();
}
}  // namespace emulation

inline uint32_t thread() {
  return emulation::here().thread();
}
inline uint32_t n_threads() {
  return emulation::here().launch().n_threads;
}
inline uint32_t lane() {
  return thread() % 32;
}
inline uint32_t warp() {
  return thread() / 32;
}
inline uint32_t n_warps() {
  return n_threads() / 32;
}
inline uint32_t block_x() {
  return emulation::here().x();
}
inline uint32_t block_y() {
  return emulation::here().y();
}
inline uint32_t block_z() {
  return emulation::here().z();
}
inline uint32_t n_blocks_x() {
  return emulation::here().launch().x;
}
inline uint32_t n_blocks_y() {
  return emulation::here().launch().y;
}
inline uint32_t n_blocks_z() {
  return emulation::here().launch().z;
}

// What s[i] gives. T: plain data.
template <class T>
class SharedElement {
 public:
  explicit SharedElement(size_t offset) : offset_(offset) {}
  SharedElement(const SharedElement&) = default;

  operator T() const {
    T value;
    std::memcpy(&value, emulation::here().read_shared(offset_, sizeof(T), alignof(T)), sizeof(T));
    return value;
  }
  const SharedElement& operator=(T value) const {
    std::memcpy(emulation::here().write_shared(offset_, sizeof(T), alignof(T)), &value, sizeof(T));
    return *this;
  }
  const SharedElement& operator=(const SharedElement& other) const { return *this = static_cast<T>(other); }
  const SharedElement& operator+=(T value) const { return *this = static_cast<T>(static_cast<T>(*this) + value); }

 private:
  size_t offset_;
};

template <class T>
class Shared {
 public:
  explicit Shared(size_t begin) : begin_(begin) {}
  SharedElement<T> operator[](size_t i) const { return SharedElement<T>(offset(i)); }
  const T* pointer(size_t i, size_t n) const {
    return reinterpret_cast<const T*>(emulation::here().read_shared(offset(i), n * sizeof(T), alignof(T)));
  }
  size_t offset(size_t i) const { return begin_ + i * sizeof(T); }

 private:
  size_t begin_;
};

template <class T>
Shared<T> shared(size_t byte_offset) {
  return Shared<T>(byte_offset);
}

template <class T>
void store16(Shared<T> s, size_t i, const Uint4& value) {
  SharedElement<Uint4>(s.offset(i)) = value;
}
inline Uint4 load16(const void* source) {
  emulation::here().check_aligned(source);
  return *static_cast<const Uint4*>(source);
}
inline void store16(void* dst, const Uint4& value) {
  emulation::here().check_aligned(dst);
  *static_cast<Uint4*>(dst) = value;
}

inline void sync_block() {
  emulation::here().sync_block();
}
inline void sync_warp() {
  emulation::here().meet(emulation::Wait::kWarp);
}
template <class T>
T shuffle(T value, uint32_t lane_from) {
  static_assert(sizeof(T) == 4);
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<T>(emulation::here().meet(emulation::Wait::kShuffle, {bits, lane_from, {}}));
}
template <class T>
T shuffle_xor(T value, uint32_t mask) {
  return shuffle(value, lane() ^ mask);
}
inline uint32_t ballot(bool condition) {
  return emulation::here().meet(emulation::Wait::kBallot, {condition ? 1u : 0u, 0, {}});
}

inline uint32_t atomic_add(uint32_t* at, uint32_t value) {
  return std::exchange(*at, *at + value);
}
inline uint64_t atomic_add(uint64_t* at, uint64_t value) {
  return std::exchange(*at, *at + value);
}

inline void mma_s8(int32_t (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emulation::here().meet(emulation::Wait::kMma, {0, 0, {d, a, b}});
}

template <class T>
void copy_async16(Shared<T> s, size_t i, const void* source) {
  emulation::here().copy_async(s.offset(i), source);
}
inline void commit_async() {
  emulation::here().commit_async();
}
template <int N>
void wait_async() {
  emulation::here().wait_async(N);
}

}  // namespace candor::backend::cuda
