#include "backend/cuda/emulation/shared_shadow.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace candor::backend::cuda::emulation {
namespace {

// Every access of every byte, kept until a barrier.
class PlainShadow {
 public:
  bool access(bool is_write, size_t offset, size_t n_bytes, const SharedShadow::Accessor& by) {
    for (const Past& past : past_) {
      const bool overlap = past.offset < offset + n_bytes && offset < past.offset + past.n_bytes;
      const bool is_same_warp = past.by.thread / 32 == by.thread / 32;
      const bool is_ordered = past.by.thread == by.thread || past.by.epoch < by.epoch ||
                              (is_same_warp && past.by.warp_epoch < by.warp_epoch);
      if (overlap && (is_write || past.is_write) && !is_ordered) return false;
    }
    past_.push_back({is_write, offset, n_bytes, by});
    return true;
  }

 private:
  struct Past {
    bool is_write;
    size_t offset;
    size_t n_bytes;
    SharedShadow::Accessor by;
  };
  std::vector<Past> past_;
};

// Accesses by chance until one is in conflict; true if both say so of the same one.
bool agree(uint32_t seed) {
  std::mt19937 random(seed);
  SharedShadow shadow;
  shadow.resize(256);
  PlainShadow plain;
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  const uint32_t n_bytes_in_use = 16u << below(5);
  const uint32_t write_odds = 2 + below(8);
  uint32_t epoch = 1;
  uint32_t warp_epochs[4] = {};
  for (int i = 0; i < 1000; ++i) {
    if (below(6) == 0) ++epoch;
    if (below(3) == 0) ++warp_epochs[below(4)];
    const uint32_t thread = below(4) * 32 + below(3);
    const size_t size = size_t{1} << below(5);
    const size_t offset = below(n_bytes_in_use / 16) * 16 + below(16) / size * size;
    const SharedShadow::Accessor by{thread, epoch, warp_epochs[thread / 32]};
    const bool is_write = below(write_odds) == 0;
    const bool is_right = is_write ? shadow.write(offset, size, by) : shadow.read(offset, size, by);
    if (is_right != plain.access(is_write, offset, size, by)) return false;
    if (!is_right) return true;
  }
  return true;
}

TEST(SharedShadow, FindsWhatAListOfAllAccessesFinds) {
  for (uint32_t seed = 0; seed < 2000; ++seed) ASSERT_TRUE(agree(seed)) << "seed " << seed;
}

TEST(SharedShadow, BytesThatAreOnTheirWayAreNoOnesUntilTheyArrive) {
  SharedShadow shadow;
  shadow.resize(64);
  const SharedShadow::Accessor owner{3, 1, 0};
  const SharedShadow::Accessor other{40, 1, 0};
  ASSERT_TRUE(shadow.begin_arriving(16, 16, owner));
  EXPECT_FALSE(shadow.read(16, 1, owner));
  EXPECT_FALSE(shadow.write(28, 4, {40, 2, 0}));
  EXPECT_EQ(shadow.conflict(), SharedShadow::Conflict::kArriving);
  EXPECT_EQ(shadow.other_thread(), 3u);
  EXPECT_TRUE(shadow.write(32, 4, other));
  shadow.arrive(16, 16, owner);
  EXPECT_TRUE(shadow.read(16, 16, owner));
  EXPECT_FALSE(shadow.read(20, 4, other));
  EXPECT_EQ(shadow.conflict(), SharedShadow::Conflict::kWrite);
  EXPECT_TRUE(shadow.read(20, 4, {40, 2, 0}));
}

}  // namespace
}  // namespace candor::backend::cuda::emulation
