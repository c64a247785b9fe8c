#pragma once
// What the tests of this folder share: aligned buffers, random rows, and bit comparison.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "kernels/kernels.h"
#include "platform/float_mode.h"
#include "support/random_weights.h"
#include "tensor/weight_formats.h"

namespace candor::kernels::testing {

using candor::testing::SplitMix;

template <class... Blocks>
constexpr std::array<DType, sizeof...(Blocks)> types_of(BlockList<Blocks...>) {
  return {Blocks::kType...};
}
inline constexpr auto kAllFormats = types_of(WeightBlocks{});

// Zeroed, at a 64-byte boundary.
class Buffer {
 public:
  explicit Buffer(size_t n_bytes) : n_bytes_(n_bytes), data_(new (std::align_val_t{64}) std::byte[n_bytes]) {
    std::memset(data_, 0, n_bytes);
  }
  ~Buffer() { ::operator delete[](data_, std::align_val_t{64}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return data_; }
  size_t size() const { return n_bytes_; }

 private:
  size_t n_bytes_;
  std::byte* data_;
};

inline std::vector<float> random_row(int64_t n, uint64_t seed, float amplitude = 1.0f) {
  SplitMix rng(seed);
  std::vector<float> row(static_cast<size_t>(n));
  for (float& x : row) x = amplitude * rng.normal();
  return row;
}

// Index of the first element whose bits differ, or -1. Two NaNs are equal.
inline int64_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<int64_t>(i);
  }
  return a.size() == b.size() ? -1 : 0;
}

// isa/amx on tile registers in software; nullptr where AVX-512 with VNNI is missing.
const KernelTable* emulated_amx_table();

// isa/avxvnni by AVX-512's instructions; nullptr where AVX-512 with VNNI is missing.
const KernelTable* evex_avxvnni_table();

// runnable_tables(); amx in software where there are no tile registers, avxvnni by instructions of AVX-512.
inline std::vector<const KernelTable*> tested_tables() {
  std::vector<const KernelTable*> tables = runnable_tables();
  if (evex_avxvnni_table() != nullptr) tables.insert(tables.end() - 1, evex_avxvnni_table());
  if (tables.back()->name != "amx" && emulated_amx_table() != nullptr) tables.push_back(emulated_amx_table());
  return tables;
}

// isa/amx's products with blocks of 32 in software, on lanes that are no AVX-512; only their matmul is of interest.
std::vector<const KernelTable*> blocks_on_lanes_tables();

// tested_tables(), and what only multiplies.
inline std::vector<const KernelTable*> tested_products() {
  std::vector<const KernelTable*> tables = tested_tables();
  for (const KernelTable* table : blocks_on_lanes_tables()) tables.push_back(table);
  return tables;
}

// A fixture in the float mode that kernels require.
class KernelTest : public ::testing::Test {
 protected:
  platform::ScopedFloatMode mode_;
};

}  // namespace candor::kernels::testing
