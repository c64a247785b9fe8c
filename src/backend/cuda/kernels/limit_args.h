#pragma once
// What the kernels take that measure a card. Plain data: it is copied as bytes.

#include <cstddef>
#include <cstdint>

namespace candor::backend::cuda {

// Each thread reads n pieces of 16 bytes, n_all pieces apart, and writes what they make together.
struct ReadProbeArgs {
  const std::byte* src = nullptr;
  uint32_t* dst = nullptr;  // [n_all]
  int64_t n_all = 0;        // threads
  int32_t n = 0;
};

// n rounds: of four tensor-core products a warp, or of eight multiply-adds a thread.
struct OpsProbeArgs {
  uint32_t* dst = nullptr;  // [threads]
  int32_t n = 0;
};

}  // namespace candor::backend::cuda
