#include "platform/allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "support/resident_memory.h"

namespace candor::platform {
namespace {

using testing::resident_bytes;

TEST(allocator, large_blocks_go_back_to_the_system_though_small_ones_stay_between_them) {
#if defined(CANDOR_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "another allocator";
#endif
  std::vector<char>(size_t{16} << 20, 'x');  // from here on glibc would keep blocks of up to this size
  give_freed_memory_back();
  constexpr size_t kBytes = size_t{1} << 20;
  constexpr int64_t kBlocks = 100;
  std::vector<std::unique_ptr<char[]>> small;
  std::vector<std::vector<char>> large;
  for (int64_t i = 0; i < kBlocks; ++i) {
    large.emplace_back(kBytes, 'x');
    small.push_back(std::make_unique<char[]>(100));
  }
  const int64_t full = resident_bytes();
  large.clear();
  EXPECT_LT(resident_bytes(), full - (kBlocks - 5) * static_cast<int64_t>(kBytes));
}

}  // namespace
}  // namespace candor::platform
