// What a card can do at best: reads of its memory, int8 products on tensor cores, multiply-adds of floats.

#include "backend/cuda/kernels/language.h"
#include "backend/cuda/kernels/limit_args.h"

namespace candor::backend::cuda {

CANDOR_DEVICE int64_t own_place() {
  return static_cast<int64_t>(block_x()) * n_threads() + thread();
}

CANDOR_KERNEL(read_probe, ReadProbeArgs) {
  const int64_t first = own_place();
  uint32_t sum = 0;
  for (int32_t i = 0; i < args.n; ++i) {
    const Uint4 piece = load16(args.src + (first + i * args.n_all) * 16);
    sum ^= piece.x ^ piece.y ^ piece.z ^ piece.w;
  }
  args.dst[first] = sum;
}

// Four sums wait for none of the others.
CANDOR_KERNEL(int8_probe, OpsProbeArgs) {
  const uint32_t a[4] = {thread(), 0x01020304u, 0xff00ff01u, 0x7f80017fu};
  const uint32_t b[2] = {thread() + 1, 0x03ff0201u};
  int32_t d[4][4] = {};
  for (int32_t i = 0; i < args.n; ++i) {
    CANDOR_UNROLL
    for (int j = 0; j < 4; ++j) mma_s8(d[j], a, b);
  }
  int32_t sum = 0;
  CANDOR_UNROLL
  for (int j = 0; j < 4; ++j) sum += d[j][0] + d[j][1] + d[j][2] + d[j][3];
  args.dst[own_place()] = static_cast<uint32_t>(sum);
}

CANDOR_KERNEL(fma_probe, OpsProbeArgs) {
  constexpr int kChains = 8;
  float sums[kChains] = {};
  const float x = to_float_rn(static_cast<int32_t>(thread()));
  for (int32_t i = 0; i < args.n; ++i) {
    CANDOR_UNROLL
    for (int j = 0; j < kChains; ++j) sums[j] = fma_rn(sums[j], 0.5f, x);
  }
  float all = 0.0f;
  CANDOR_UNROLL
  for (int j = 0; j < kChains; ++j) all = add_rn(all, sums[j]);
  args.dst[own_place()] = bits_of(all);
}

}  // namespace candor::backend::cuda
