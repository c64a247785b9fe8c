#include "backend/cuda/recurrent_kernels.h"

#include <algorithm>

#include "backend/cuda/kernels/kernel_list.h"

namespace candor::backend::cuda {
namespace {

constexpr int32_t kConvThreads = 128;
constexpr int32_t kMostThreads = 128;
constexpr int32_t kDimsOfLongBatches = 256;  // of a key
constexpr int32_t kLongBatch = 8;            // rows, a multiple of 4
constexpr int32_t kShortBatch = 4;
constexpr int32_t kStateFloats = 16 << 10;  // of a block's columns in shared memory, at most

int32_t in_warps(int32_t n) {
  return (n + 31) / 32 * 32;
}

// A thread for each of n columns; in shared memory a column takes n_rows floats.
int32_t column_threads(int32_t n, int32_t n_rows) {
  const int32_t most = std::max(32, kStateFloats / n_rows / 32 * 32);
  return std::min({in_warps(n), kMostThreads, most});
}

uint32_t blocks_of(int32_t n, int32_t n_threads) {
  return static_cast<uint32_t>((n + n_threads - 1) / n_threads);
}

uint32_t bytes_of(int64_t n_floats) {
  return static_cast<uint32_t>(n_floats * static_cast<int64_t>(sizeof(float)));
}

}  // namespace

void run_conv(Launcher& launcher, const ConvRowsArgs& args) {
  const Launch launch{.x = blocks_of(args.n, kConvThreads),
                      .y = static_cast<uint32_t>(args.states.n_slices),
                      .n_threads = static_cast<uint32_t>(kConvThreads)};
  launcher.run(kernel::conv_rows, launch, args);
}

void run_delta_rule(Launcher& launcher, const DeltaRowsArgs& args) {
  const bool is_in_registers = args.k_dim == 64 || args.k_dim == 128;
  const int32_t n_threads =
      is_in_registers ? std::min(in_warps(args.v_dim), kMostThreads) : column_threads(args.v_dim, args.k_dim);
  const int64_t padded = (args.k_dim + 3) / 4 * 4;
  DeltaRowsArgs batched = args;
  batched.batch_rows = args.k_dim <= kDimsOfLongBatches ? kLongBatch : kShortBatch;
  const int64_t batch = batched.batch_rows * (3 * padded + 1);
  const int64_t state = is_in_registers ? 0 : int64_t{args.k_dim} * n_threads;
  const Launch launch{.x = blocks_of(args.v_dim, n_threads),
                      .y = static_cast<uint32_t>(args.n_v_heads),
                      .z = static_cast<uint32_t>(args.states.n_slices),
                      .n_threads = static_cast<uint32_t>(n_threads),
                      .shared_bytes = bytes_of(batch + state)};
  const Kernel<DeltaRowsArgs> kernel = args.k_dim == 64    ? kernel::delta_rows_64
                                       : args.k_dim == 128 ? kernel::delta_rows_128
                                                           : kernel::delta_rows;
  launcher.run(kernel, launch, batched);
}

void run_ssm_scan(Launcher& launcher, const SsmRowsArgs& args) {
  const int32_t n_threads = column_threads(args.head_dim, args.state_dim);
  const int64_t batch = int64_t{2} * kSsmBatch * args.state_dim + 2 * kSsmBatch;
  const Launch launch{.x = blocks_of(args.head_dim, n_threads),
                      .y = static_cast<uint32_t>(args.n_heads),
                      .z = static_cast<uint32_t>(args.states.n_slices),
                      .n_threads = static_cast<uint32_t>(n_threads),
                      .shared_bytes = bytes_of(batch + int64_t{args.state_dim} * n_threads)};
  launcher.run(kernel::ssm_rows, launch, args);
}

}  // namespace candor::backend::cuda
