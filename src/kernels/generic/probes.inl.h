// Loops that reach what this instruction set can do at best (reads, int8 products, f32 products), for kernels/limits.h.

// The prefetch distance: about the latency of DRAM at its full rate.
constexpr size_t kPrefetchBytes = 4096;
constexpr int kProbeChains = 6 * kDotPanels;

// Prefetches into the first-level cache, or into the second (far), whichever gets more out of a processor.
template <bool is_far>
inline uint64_t read_probe(const std::byte* src, size_t n_bytes) {
  const auto* p = reinterpret_cast<const uint8_t*>(src);
  U8 seen[4] = {load_u(p), load_u(p + 64), load_u(p + 128), load_u(p + 192)};
  for (size_t at = 0; at + 256 <= n_bytes; at += 256) {
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const uint8_t* ahead = p + at + 64 * i + kPrefetchBytes;
      if constexpr (is_far) {
        prefetch_far(ahead);
      } else {
        prefetch(ahead);
      }
      seen[i] = or_u(seen[i], load_u(p + at + 64 * i));
    }
  }
  uint8_t bytes[64];
  store_u(bytes, or_u(or_u(seen[0], seen[1]), or_u(seen[2], seen[3])));
  return bytes[0];
}

inline int64_t int8_probe(int64_t n_rounds) {
  alignas(64) uint8_t ones[64];
  alignas(64) int8_t x[4 * kProbeChains];
  std::memset(ones, 1, sizeof ones);
  std::memset(x, 1, sizeof x);
  const U8 w = load_u(ones);
  I32 sums[kProbeChains];
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) sums[i] = splat_i(0);
  for (int64_t n = 0; n < n_rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = dot4<false, kDotHasHalves>(sums[i], w, x + 4 * i);
    __asm__ volatile("" ::: "memory");
  }
  int64_t total = 0;
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) total += sum_lanes(sums[i]);
  return total == 1 ? 0 : n_rounds * kProbeChains * 128;
}

// Chains of Step::next, each kOps operations.
template <class Step>
inline int64_t float_probe(int64_t n_rounds) {
  float starts[kProbeChains][16];  // different in every register, or the compiler computes equal ones once
  for (int i = 0; i < kProbeChains * 16; ++i) starts[i / 16][i % 16] = static_cast<float>(i);
  F32 sums[kProbeChains];
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) sums[i] = load(starts[i]);
  for (int64_t n = 0; n < n_rounds; ++n) {
#pragma GCC unroll 16
    for (int i = 0; i < kProbeChains; ++i) sums[i] = Step::next(sums[i]);
    __asm__ volatile("" ::: "memory");
  }
  float total = 0;
#pragma GCC unroll 16
  for (int i = 0; i < kProbeChains; ++i) total += sum_tree(sums[i]);
  return total == 0.5f ? 0 : n_rounds * kProbeChains * Step::kOps;
}

struct FmaStep {
  static constexpr int64_t kOps = 32;
  static CANDOR_INLINE F32 next(F32 sum) {
    const F32 w = splat(0.999f);
    return fma(sum, w, w);
  }
};
